"""Which request runs next: continuous batching over slots. Pure; no jax.

What it decides follows from the order of the calls alone, so every host of a slice decides the same.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.serve.engine import FinishReason, Sampling


@dataclass
class Request:
    """A request in a slot or waiting for one. `filled` prompt tokens are in the cache; `made` tokens were emitted."""

    request_id: str
    prompt: tuple[int, ...]
    sampling: Sampling
    slot: int = -1
    filled: int = 0
    made: int = 0
    last_token: int = -1

    @property
    def prefilled(self) -> bool:
        return self.filled == len(self.prompt)

    @property
    def position(self) -> int:
        """Where `last_token` stands in the sequence."""
        return len(self.prompt) + self.made - 1

    def took(self, token: int) -> FinishReason | None:
        """Record an emitted token; the reason when it was the last one."""
        self.made += 1
        self.last_token = token
        if token in self.sampling.stop_token_ids:
            return "stop"
        return "length" if self.made >= self.sampling.max_tokens else None


@dataclass(frozen=True)
class Prefill:
    """Put `tokens` (at most `bucket`) of one request into the cache, from position `start` on."""

    request: Request
    start: int
    tokens: tuple[int, ...]
    bucket: int

    @property
    def last(self) -> bool:
        """Whether the prompt ends here, so that the request's first token comes out."""
        return self.start + len(self.tokens) == len(self.request.prompt)


@dataclass(frozen=True)
class Decode:
    """One token for each of these requests."""

    requests: tuple[Request, ...]


class Schedule:
    """Slots, the queue before them, and whose turn it is."""

    def __init__(self, slots: int, context: int, buckets: Sequence[int]) -> None:
        """`buckets`: prompt lengths that are compiled; those beyond `context` count as `context`."""
        self.context = context
        self.buckets = tuple(sorted({min(bucket, context) for bucket in buckets}))
        self._free = list(range(slots))
        self._waiting: deque[Request] = deque()
        self._running: dict[str, Request] = {}
        self._prefilled_last = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, request_id: str, prompt: Iterable[int], sampling: Sampling) -> None:
        """Queue a request. Raises ValueError when it cannot run or its id is taken."""
        tokens = tuple(int(token) for token in prompt)
        if not tokens or sampling.max_tokens < 1:
            raise ValueError(f"request {request_id}: an empty prompt, or max_tokens below 1")
        if len(tokens) + sampling.max_tokens > self.context:
            raise ValueError(
                f"request {request_id}: {len(tokens)} prompt tokens and max_tokens {sampling.max_tokens} "
                f"are more than the context of {self.context}"
            )
        if request_id in self._running or any(request.request_id == request_id for request in self._waiting):
            raise ValueError(f"request {request_id} is here already")
        self._waiting.append(Request(request_id, tokens, sampling))

    def remove(self, request_id: str) -> bool:
        """Take a request out, running or waiting, and free its slot. False when it is not here."""
        request = self._running.pop(request_id, None)
        if request is not None:
            self._free.append(request.slot)
            self._free.sort()
            return True
        for waiting in self._waiting:
            if waiting.request_id == request_id:
                self._waiting.remove(waiting)
                return True
        return False

    def next(self) -> Prefill | Decode | None:
        """What to run now; None when idle. A prompt's chunk and a decode step take turns while both have work."""
        while self._waiting and self._free:
            request = self._waiting.popleft()
            request.slot = self._free.pop(0)
            self._running[request.request_id] = request
        decoding = tuple(request for request in self._running.values() if request.prefilled)
        prompts = [request for request in self._running.values() if not request.prefilled]
        if prompts and not (decoding and self._prefilled_last):
            self._prefilled_last = True
            return self._chunk(prompts[0])
        self._prefilled_last = False
        return Decode(decoding) if decoding else None

    def _chunk(self, request: Request) -> Prefill:
        rest = request.prompt[request.filled : request.filled + self.buckets[-1]]
        bucket = next(bucket for bucket in self.buckets if bucket >= len(rest))
        chunk = Prefill(request, request.filled, rest, bucket)
        request.filled += len(rest)
        return chunk
