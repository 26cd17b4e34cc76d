"""Text to tokens and back, and the chat template, from a model's folder in HF layout. No jax."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as HfTokenizer

from workloads.models.hf import read_json
from workloads.spec.decoder import ModelError

Message = Mapping[str, Any]


class ChatTemplateError(ValueError):
    """The model's chat template refuses these messages; the text is the template's own reason."""


class Tokenizer:
    """Tokenizer, special tokens and chat template of one model."""

    def __init__(self, folder: str | Path) -> None:
        """Load `tokenizer.json` and, where they exist, the settings, generation settings and chat template beside it.

        Raises:
            ModelError: there is no readable tokenizer.json.
        """
        self.folder = Path(folder)
        path = self.folder / "tokenizer.json"
        if not path.is_file():
            raise ModelError(f"file {path}", "it is missing", "Put the model's tokenizer.json beside its weights")
        try:
            self._tokenizer = HfTokenizer.from_file(str(path))
        except Exception as why:  # the Rust library raises the bare class
            raise ModelError(f"a tokenizer in {path}", f"unreadable: {why}", "Fetch the file again") from None
        # Left over from how the model was trained. A prompt is taken whole, or refused for its length.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._settings = self._optional("tokenizer_config.json")
        model, generation = self._optional("config.json"), self._optional("generation_config.json")
        self.context = int(model.get("max_position_embeddings", 0))
        """Tokens that the model was made for; 0 where its folder does not say."""
        self.vocab_size: int = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self._specials = {key: self._special(key) for key in ("bos_token", "eos_token", "unk_token", "pad_token")}
        self.eos_token_ids = frozenset(self._ends(model, generation))
        """Tokens that end an answer."""
        self._template = self._chat_template()

    def _optional(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return read_json(path) if path.is_file() else {}

    def _special(self, key: str) -> str | None:
        value = self._settings.get(key)
        return value.get("content") if isinstance(value, dict) else value

    def _ends(self, model: Mapping[str, Any], generation: Mapping[str, Any]) -> set[int]:
        ends: set[int] = set()
        for source in (model, generation):
            found = source.get("eos_token_id")
            ends |= set(found) if isinstance(found, list) else set() if found is None else {int(found)}
        eos = self._specials["eos_token"]
        named = None if eos is None else self._tokenizer.token_to_id(eos)
        return ends if named is None else ends | {named}

    def _chat_template(self) -> jinja2.Template | None:
        path = self.folder / "chat_template.jinja"
        source = path.read_text(encoding="utf-8") if path.is_file() else self._settings.get("chat_template")
        if isinstance(source, list):
            source = {entry["name"]: entry["template"] for entry in source}.get("default")
        if not source:
            return None
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        try:
            return environment.from_string(source)
        except jinja2.TemplateError as why:
            raise ModelError(
                f"the chat template of {self.folder}", f"unreadable: {why}", "Repair the template"
            ) from None

    @property
    def has_chat_template(self) -> bool:
        return self._template is not None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Tokens of `text`; with `add_special_tokens` also those that the model wants around it, such as bos."""
        return list(self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of `tokens`; bytes that are no UTF-8 become U+FFFD."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens))

    def stream(self, skip_special_tokens: bool = True) -> "TextStream":
        """A decoder for tokens that come one at a time."""
        return TextStream(self, skip_special_tokens)

    def token_text(self, token: int) -> str:
        """The text of one token by itself, special ones by their name: what `logprobs` show."""
        return self.decode([token], skip_special_tokens=False)

    def render_chat(self, messages: Sequence[Message], add_generation_prompt: bool = True, **variables: Any) -> str:
        """The prompt text of `messages`, each with `role` and `content`; `variables` reach the template.

        Raises:
            ChatTemplateError: the model has no template, or it refuses the messages.
        """
        if self._template is None:
            raise ChatTemplateError("the model has no chat template; use completions instead")
        specials = {key: text for key, text in self._specials.items() if text is not None}
        try:
            return self._template.render(
                messages=list(messages), add_generation_prompt=add_generation_prompt, **{**specials, **variables}
            )
        except (jinja2.TemplateError, TypeError) as why:
            raise ChatTemplateError(f"the model's chat template refuses these messages: {why}") from None

    def apply_chat_template(
        self, messages: Sequence[Message], add_generation_prompt: bool = True, **variables: Any
    ) -> list[int]:
        """The prompt tokens of `messages`. Raises ChatTemplateError as `render_chat` does."""
        return self.encode(self.render_chat(messages, add_generation_prompt, **variables), add_special_tokens=False)


class TextStream:
    """Decodes tokens as they come, and never gives out half a character: the parts join to `decode` of all tokens."""

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool) -> None:
        self._tokenizer, self._skip = tokenizer, skip_special_tokens
        # The window: tokens before `_read` are context (some decoders treat the first token of a text apart).
        self._tokens: list[int] = []
        self._read = 0
        self._given = 0

    def _text(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens, self._skip)

    def add(self, token: int) -> str:
        """The text that this token completes; empty while a character lacks bytes."""
        self._tokens.append(token)
        text = self._text(self._tokens)[len(self._text(self._tokens[: self._read])) :]
        # An unfinished character has up to three bytes, each of which may show as U+FFFD.
        held = min(3, len(text) - len(text.rstrip("\ufffd")))
        new = text[self._given : len(text) - held]
        self._given += len(new)
        if held == 0 and text:
            self._tokens, self._read, self._given = self._tokens[self._read :], len(self._tokens) - self._read, 0
        return new

    def end(self) -> str:
        """What is still held back, when no more tokens come."""
        text = self._text(self._tokens)[len(self._text(self._tokens[: self._read])) :]
        rest, self._tokens, self._read, self._given = text[self._given :], [], 0, 0
        return rest


def _tojson(value: object, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
