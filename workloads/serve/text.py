"""From tokens to text while they arrive, cut at the first stop string, also one that several tokens make together."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from workloads.models.tokenizer import Tokenizer
from workloads.serve.engine import Emitted


@dataclass(frozen=True)
class Token:
    """One generated token. `text` is its own text, which may be an unfinished character."""

    id: int
    logprob: float
    text: str


@dataclass(frozen=True)
class Piece:
    """A part of an answer: the text that is now certain, and the tokens that have come since the last piece."""

    text: str
    tokens: tuple[Token, ...]
    finish_reason: Literal["stop", "length"] | None


class StopStrings:
    """Cuts a text that arrives in parts at the first stop string; holds back what may be the beginning of one."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that is safe to show, and whether a stop string has come."""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self._held = ""
            return text[: min(found)], True
        keep = max((self._overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        longest = min(len(text), len(stop) - 1)
        return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


async def pieces(
    arriving: AsyncIterator[Emitted], tokenizer: Tokenizer, stops: Sequence[str], stop_ids: frozenset[int]
) -> AsyncGenerator[Piece, None]:
    """The answer in pieces; the last one has a finish reason. A stop string and a stop token are no part of the text.

    Tokens are counted and listed as they were generated, those of a stop string and the stop token included.
    """
    decoder, scanner = tokenizer.stream(), StopStrings(stops)
    waiting: list[Token] = []
    async for one in arriving:
        text, stopped = "", False
        if one.token is not None:
            shown = tokenizer.token_text(one.token)
            waiting.append(Token(one.token, one.logprob if one.logprob is not None else 0.0, shown))
            if one.token not in stop_ids:
                text, stopped = scanner.push(decoder.add(one.token))
        if one.finish_reason is not None and not stopped:
            rest, stopped = scanner.push(decoder.end())
            text += rest if stopped else rest + scanner.flush()
        if stopped or one.finish_reason is not None:
            length = one.finish_reason == "length" and not stopped
            yield Piece(text, tuple(waiting), "length" if length else "stop")
            return
        if text:
            yield Piece(text, tuple(waiting), None)
            waiting.clear()
