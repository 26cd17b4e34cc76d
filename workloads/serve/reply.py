"""The answers of OpenAI's API as JSON values: whole and in chunks, for chat and for plain completions."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from workloads.serve.text import Piece, Token

Json = dict[str, Any]


@dataclass
class Usage:
    """Tokens of one request."""

    prompt_tokens: int
    completion_tokens: int = 0

    def json(self) -> Json:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


@dataclass
class Reply:
    """Makes the JSON of one answer. `chat` chooses between the two endpoints' forms."""

    chat: bool
    model: str
    fingerprint: str
    prompt: Sequence[int]
    logprobs: bool
    token_ids: bool
    include_usage: bool
    usage: Usage = field(init=False)

    def __post_init__(self) -> None:
        self.usage = Usage(len(self.prompt))
        self._id = ("chatcmpl-" if self.chat else "cmpl-") + uuid.uuid4().hex
        self._created = int(time.time())
        self._offset = 0
        self._begun = False

    def whole(self, parts: Sequence[Piece]) -> Json:
        """The answer to a request without `stream`. `parts` are all its pieces."""
        tokens = [token for piece in parts for token in piece.tokens]
        self.usage.completion_tokens = len(tokens)
        text = "".join(piece.text for piece in parts)
        choice: Json = {"index": 0}
        if self.chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        self._finish(choice, tokens, parts[-1].finish_reason)
        whole = self._frame("chat.completion" if self.chat else "text_completion", [choice])
        whole["usage"] = self.usage.json()
        if self.token_ids:
            whole["prompt_token_ids"] = list(self.prompt)
        return whole

    def first(self) -> Json | None:
        """The chunk before any token: a chat's role."""
        if not self.chat:
            return None
        chunk = self._chunk({"index": 0, "delta": {"role": "assistant", "content": ""}}, (), None)
        if self.token_ids:
            chunk["prompt_token_ids"] = list(self.prompt)
        return chunk

    def part(self, piece: Piece) -> list[Json]:
        """The chunks of one piece. The finish reason of a chat comes in a chunk of its own, as OpenAI sends it."""
        self.usage.completion_tokens += len(piece.tokens)
        if not self.chat:
            chunk = self._chunk({"index": 0, "text": piece.text}, piece.tokens, piece.finish_reason)
            if self.token_ids and not self._begun:
                chunk["prompt_token_ids"] = list(self.prompt)
            self._begun = True
            return [chunk]
        chunks = []
        if piece.text or piece.tokens:
            chunks.append(self._chunk({"index": 0, "delta": {"content": piece.text}}, piece.tokens, None))
        if piece.finish_reason is not None:
            chunks.append(self._chunk({"index": 0, "delta": {}}, (), piece.finish_reason))
        return chunks

    def last(self) -> Json | None:
        """The chunk with the usage, where the client asked for it."""
        if not self.include_usage:
            return None
        return self._frame(self._chunk_object, []) | {"usage": self.usage.json()}

    @property
    def _chunk_object(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _chunk(self, choice: Json, tokens: Sequence[Token], reason: str | None) -> Json:
        self._finish(choice, tokens, reason)
        chunk = self._frame(self._chunk_object, [choice])
        if self.include_usage:
            chunk["usage"] = None
        return chunk

    def _frame(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        }

    def _finish(self, choice: Json, tokens: Sequence[Token], reason: str | None) -> None:
        choice["finish_reason"] = reason
        choice["logprobs"] = self._logprobs(tokens) if self.logprobs and tokens else None
        if self.token_ids:
            choice["token_ids"] = [token.id for token in tokens]

    def _logprobs(self, tokens: Sequence[Token]) -> Json:
        if self.chat:
            return {"content": [_entry(token) for token in tokens], "refusal": None}
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token.text)
        return {
            "tokens": [token.text for token in tokens],
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": [{} for _ in tokens],
            "text_offset": offsets,
        }


def _entry(token: Token) -> Json:
    # A token that is only a part of a character has no text of its own, so its bytes are not known from here.
    whole = "\ufffd" not in token.text
    data = list(token.text.encode()) if whole else None
    return {"token": token.text, "logprob": token.logprob, "bytes": data, "top_logprobs": []}
