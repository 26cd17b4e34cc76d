"""The boundary between HTTP and whatever makes tokens.

Every host of a slice holds one engine. All of them get the same calls in the same order, so that their devices run the
same programs; what one returns, all return. Nothing here imports jax.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True)
class Sampling:
    """How the tokens of one request are chosen. `temperature` 0 is greedy; `top_k` 0 and `top_p` 1 are off."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)
    """The model's end tokens are among these unless the request says `ignore_eos`."""


@dataclass(frozen=True)
class Emitted:
    """One token of one request, or its end. `token` is None on an end that brought no token (a cancellation).

    A stop token ends the request with `finish_reason` "stop" and is itself emitted in `token`; no part of the text.
    """

    request_id: str
    token: int | None
    logprob: float | None
    finish_reason: FinishReason | None


@dataclass(frozen=True)
class EngineStats:
    """`running + waiting` requests are in the engine; `compiles` counts compiled programs since the process began."""

    running: int
    waiting: int
    slots: int
    steps: int
    compiles: int


class Engine(Protocol):
    """What a bundled or a foreign engine has to do. Calls never block on a request that is not in the engine."""

    def add(self, request_id: str, prompt: Sequence[int], sampling: Sampling) -> None:
        """Queue a request. Its length was checked before: prompt and max_tokens fit the context."""

    def cancel(self, request_id: str) -> None:
        """Free the request's place at once; unknown or finished ids are ignored."""

    def step(self) -> list[Emitted]:
        """Run one prefill or decode step and return what it made; an idle engine returns an empty list."""

    def stats(self) -> EngineStats:
        """Counts of this moment."""
