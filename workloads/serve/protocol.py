"""The requests of OpenAI's API: every documented field is applied, or refused before the engine is touched.

Fields: https://platform.openai.com/docs/api-reference/chat/create and .../completions/create, and those that vLLM's
server adds (top_k, ignore_eos, stop_token_ids, return_token_ids).
"""

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workloads.serve.engine import Sampling
from workloads.serve.errors import refuse

# Fields that this server does not apply, with the values that ask for nothing. Any other value is refused.
REFUSED: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "logit_bias": ({},),
    "min_p": (0,),
    "min_tokens": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "structured_outputs": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": (),
    "verbosity": (),
    "web_search_options": (),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "top_logprobs": (0,),
    "prompt_logprobs": (),
    "echo": (False,),
    "suffix": ("",),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "add_special_tokens": (True,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "include_stop_str_in_output": (False,),
    "truncate_prompt_tokens": (),
    "use_beam_search": (False,),
    "priority": (0,),
}
# Marks for the caller's own books; they change no answer.
LABELS = ("user", "metadata", "safety_identifier", "prompt_cache_key", "request_id")

_Requested = TypeVar("_Requested", bound="_Request")


class StreamOptions(BaseModel):
    """`stream_options`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    include_usage: bool = Field(default=False, description="A last chunk with the usage.")


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    model: str = Field(description="The service's model, as `GET /v1/models` names it.")
    stream: bool | None = Field(default=None, description="Server-sent events, one per piece of text.")
    stream_options: StreamOptions | None = Field(
        default=None, description='`{"include_usage": true}`: a last chunk with the usage. Only with `stream`.'
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="0 to 2. 0 takes the likeliest token. Absent: 1."
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="Above 0, up to 1. Absent: 1.")
    top_k: int | None = Field(default=None, ge=-1, description="0 or -1: all tokens. Absent: 0.")
    seed: int | None = Field(
        default=None, ge=-(2**63), lt=2**63, description="Equal seeds give equal answers. Absent: drawn."
    )
    max_tokens: int | None = Field(
        default=None, ge=1, description="Tokens of the answer. Absent: 16 for a completion, for a chat all that fit."
    )
    stop: str | list[str] | None = Field(
        default=None, description="Up to 16 strings before which the answer ends; they are not part of it."
    )
    stop_token_ids: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="Tokens that end the answer, besides the model's own."
    )
    ignore_eos: bool | None = Field(default=None, description="The model's own end tokens do not end the answer.")
    return_token_ids: bool | None = Field(
        default=None, description="Adds `prompt_token_ids`, and `token_ids` to each choice."
    )

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """The request in this JSON text.

        Raises:
            ApiError: 400 with the field at fault in `param`.
        """
        try:
            request = cls.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            if first["type"] == "json_invalid":
                refuse(None, f"the body is not JSON: {first['msg']}")
            param = _param(first["loc"])
            refuse(param, f"{param}: {first['msg']}" if param else f"the body is no JSON object: {first['msg']}")
        request._check()
        return request

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a chunk that holds the usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def wanted_tokens(self) -> int | None:
        """How many tokens the client asks for at most, or None where it leaves that open."""
        return self.max_tokens

    def sampling(self, max_tokens: int, eos_token_ids: frozenset[int]) -> Sampling:
        """How the engine chooses the tokens. Without a seed it is drawn here, so that all hosts use the same."""
        stop_ids = frozenset(self.stop_token_ids or ())
        return Sampling(
            max_tokens=max_tokens,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            # The engine counts tokens in 32 bits; a number above every vocabulary means all tokens either way.
            top_k=min(max(self.top_k or 0, 0), 2**31 - 1),
            seed=(secrets.randbits(64) if self.seed is None else self.seed) % 2**64,
            stop_token_ids=stop_ids if self.ignore_eos else stop_ids | eos_token_ids,
        )

    def _check(self) -> None:
        _check_extra(self.model_extra or {})
        if self.stream_options is not None and not self.stream:
            refuse("stream_options", "stream_options is only for stream: true")
        if "" in self.stops:
            refuse("stop", "stop: a stop string has at least one character")
        if len(self.stops) > 16:
            refuse("stop", f"stop: {len(self.stops)} strings; at most 16 are allowed")


class TextPart(BaseModel):
    """A part of a message's content."""

    model_config = ConfigDict(strict=True, extra="forbid")

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(strict=True, extra="forbid")

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: str | None = None
    # What clients send back of an answer that they were given; a value in them is something else, and refused.
    refusal: None = None
    tool_calls: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: None = None
    audio: None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None

    def plain(self) -> dict[str, str]:
        """As a chat template takes it; `developer` is OpenAI's newer word for `system`."""
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        message = {"role": "system" if self.role == "developer" else self.role, "content": content}
        return message if self.name is None else message | {"name": self.name}


class ChatRequest(_Request):
    """Body of POST /v1/chat/completions."""

    messages: list[Message] = Field(
        min_length=1,
        description="Roles `system`, `developer`, `user`, `assistant`; content is text or parts of type `text`.",
    )
    max_completion_tokens: int | None = Field(
        default=None, ge=1, description="The same as `max_tokens`; both only if they are equal."
    )
    logprobs: bool | None = Field(default=None, description="Log probability of each chosen token.")

    @property
    def wanted_tokens(self) -> int | None:
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def _check(self) -> None:
        super()._check()
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            refuse("max_tokens", "max_tokens and max_completion_tokens differ; give one of them")


class CompletionRequest(_Request):
    """Body of POST /v1/completions. The prompt is one text or one list of token ids."""

    prompt: str | list[str] | list[int] | list[list[int]] = Field(
        description="One text, or one list of token ids. Several prompts are several requests."
    )
    logprobs: int | None = Field(
        default=None, ge=0, le=5, description="Only 0: the chosen tokens' log probabilities, no alternatives."
    )

    @property
    def wanted_tokens(self) -> int | None:
        return 16 if self.max_tokens is None else self.max_tokens

    @property
    def single_prompt(self) -> str | list[int]:
        """The one prompt of this request."""
        if isinstance(self.prompt, str):
            return self.prompt
        ids = [token for token in self.prompt if isinstance(token, int)]
        if len(ids) == len(self.prompt):
            return ids
        if len(self.prompt) > 1:
            refuse("prompt", f"prompt: {len(self.prompt)} prompts in one request; send them one by one")
        only = self.prompt[0]
        return [only] if isinstance(only, int) else only

    def _check(self) -> None:
        super()._check()
        if self.logprobs:
            refuse("logprobs", f"logprobs is {self.logprobs}; only 0 is served: the chosen tokens, no alternatives")
        if not self.single_prompt:
            refuse("prompt", "prompt: it is empty")


def _check_extra(extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if key in LABELS:
            continue
        if key not in REFUSED:
            refuse(key, f"Unrecognized request argument supplied: {key}")
        if value is not None and value not in REFUSED[key]:
            allowed = ", ".join(map(repr, REFUSED[key])) or "null"
            refuse(
                key, f"{key} is {str(value)[:80]!r}, which this server does not apply; leave it out or use {allowed}"
            )


def _param(loc: tuple[int | str, ...]) -> str | None:
    """`("messages", 0, "content", "str")` as `messages[0].content`; the names of a union's branches are left out."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif re.fullmatch(r"[a-z_]+", part) and part not in ("str", "int"):
            path += f".{part}" if path else part
        else:
            break
    return path or None
