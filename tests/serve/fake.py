"""A deterministic engine without jax, and hosts that hold it in this process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from workloads.serve.engine import Emitted, EngineStats, FinishReason, Sampling
from workloads.serve.loop import Add, Command
from workloads.spec import EngineSpec


@dataclass
class Running:
    sampling: Sampling
    answer: list[int]
    given: int = 0


class FakeEngine:
    """Gives every running request its next token per step.

    `script` is the answer; without one it is made of the prompt, so that equal prompts give equal answers.
    """

    def __init__(
        self, model: str = "", spec: EngineSpec | None = None, script: Sequence[int] = (), slots: int = 2
    ) -> None:
        self.script = list(script)
        self.slots = spec.max_slots if spec else slots
        self.running: dict[str, Running] = {}
        self.steps = 0
        self.added: list[tuple[str, tuple[int, ...], Sampling]] = []
        self.cancelled: list[str] = []

    def warm_up(self) -> None:
        """There is nothing to compile."""

    def add(self, request_id: str, prompt: Sequence[int], sampling: Sampling) -> None:
        self.added.append((request_id, tuple(prompt), sampling))
        made = [97 + (sum(prompt) + place) % 26 for place in range(sampling.max_tokens)]
        self.running[request_id] = Running(sampling, self.script or made)

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.running.pop(request_id, None)

    def step(self) -> list[Emitted]:
        self.steps += 1
        emitted = []
        for request_id, running in list(self.running.items())[: self.slots]:
            token = running.answer[running.given % len(running.answer)]
            running.given += 1
            reason: FinishReason | None = None
            if token in running.sampling.stop_token_ids:
                reason = "stop"
            elif running.given == running.sampling.max_tokens:
                reason = "length"
            if reason is not None:
                del self.running[request_id]
            emitted.append(Emitted(request_id, token, -0.25, reason))
        return emitted

    def stats(self) -> EngineStats:
        waiting = max(0, len(self.running) - self.slots)
        return EngineStats(len(self.running) - waiting, waiting, self.slots, self.steps, 0)


@dataclass
class FakeHosts:
    """Hosts of one slice in this process. `paused` holds the next step back, `broken` makes it fail."""

    engine: FakeEngine
    paused: bool = False
    broken: bool = False
    lost: bool = False
    pause_before: int | None = None
    """The step before which it pauses by itself."""
    steps: list[int] = field(default_factory=list)

    async def advance(self, step: int, commands: tuple[Command, ...]) -> list[Emitted]:
        if step == self.pause_before:
            self.paused = True
        for command in commands:
            if isinstance(command, Add):
                self.engine.add(command.request_id, command.prompt, command.sampling)
            else:
                self.engine.cancel(command.request_id)
        while self.paused and not self.broken:
            await asyncio.sleep(0.002)
        if self.broken:
            raise RuntimeError("traceback of a far process\nValueError: the device is gone")
        self.steps.append(step)
        await asyncio.sleep(0)
        return self.engine.step()

    async def ping(self) -> None:
        if self.lost:
            raise ConnectionError("host 1 is gone")
