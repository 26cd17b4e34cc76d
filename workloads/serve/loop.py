"""The engine loop of one replica: requests of many clients in, one lockstep call per step to all hosts of the slice.

It sleeps while there is nothing to do. When a step fails or does not come back, every open request ends with an error,
and the loop is dead for good: the replica is replaced.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from workloads.serve.engine import Emitted, Sampling
from workloads.serve.errors import EngineDead, QueueFull

logger = logging.getLogger("ray.serve")


@dataclass(frozen=True)
class Add:
    """Put a request into the engine."""

    request_id: str
    prompt: tuple[int, ...]
    sampling: Sampling


@dataclass(frozen=True)
class Cancel:
    """Take a request out of the engine."""

    request_id: str


Command = Add | Cancel


class Hosts(Protocol):
    """The hosts of one slice. They get the same commands with the same step number and give the same tokens."""

    async def advance(self, step: int, commands: tuple[Command, ...]) -> list[Emitted]:
        """Apply the commands on every host, run one engine step, return what it made. `step` counts from 1."""

    async def ping(self) -> None:
        """Return when every host has answered; raise when one does not."""


@dataclass
class Ticket:
    """One open request; iterate over it to get its tokens. The last one has a finish reason."""

    request_id: str
    _arrived: "asyncio.Queue[Emitted | EngineDead]" = field(default_factory=asyncio.Queue)

    def put(self, item: Emitted | EngineDead) -> None:
        self._arrived.put_nowait(item)

    async def __aiter__(self) -> AsyncIterator[Emitted]:
        while True:
            item = await self._arrived.get()
            if isinstance(item, EngineDead):
                raise item
            yield item
            if item.finish_reason is not None:
                return


class EngineLoop:
    """Drives the hosts. All methods run in one event loop; none of them but `check` and `close` waits.

    Args:
        hosts: what the steps run on.
        most_open: requests, running and waiting together, that are let in.
        step_timeout_s: a step that takes longer means that the slice hangs.
    """

    def __init__(self, hosts: Hosts, most_open: int, step_timeout_s: float) -> None:
        self._hosts = hosts
        self._most_open = most_open
        self._step_timeout_s = step_timeout_s
        self._open: dict[str, Ticket] = {}
        self._commands: list[Command] = []
        self._wake = asyncio.Event()
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._dead: EngineDead | None = None
        self.steps = 0
        self.last_step_s: float | None = None
        """Seconds that the last step took."""

    @property
    def dead(self) -> EngineDead | None:
        """Why the loop has ended, or None while it lives."""
        return self._dead

    @property
    def open_requests(self) -> int:
        """Requests that are running or waiting."""
        return len(self._open)

    def submit(self, prompt: Sequence[int], sampling: Sampling) -> Ticket:
        """Queue a request.

        Raises:
            EngineDead: the loop has ended.
            QueueFull: `most_open` requests are open.
        """
        if self._dead is not None:
            raise EngineDead(self._dead.reason)
        if len(self._open) >= self._most_open:
            raise QueueFull(self._most_open)
        ticket = Ticket(f"r{next(self._numbers)}")
        self._open[ticket.request_id] = ticket
        self._command(Add(ticket.request_id, tuple(prompt), sampling))
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Give the request's place free. A request that has ended is left alone."""
        if self._open.pop(ticket.request_id, None) is not None and self._dead is None:
            self._command(Cancel(ticket.request_id))

    async def check(self, timeout_s: float) -> None:
        """Ask every host whether it is there. A dead host ends the loop, so that nobody waits for it.

        Raises:
            EngineDead: the loop has ended, before or by this check.
        """
        if self._dead is None:
            try:
                await asyncio.wait_for(self._hosts.ping(), timeout_s)
            except Exception as error:
                self._die(error, f"a host of the slice did not answer within {timeout_s:g} s")
                if self._task is not None:
                    self._task.cancel()
        if self._dead is not None:
            raise EngineDead(self._dead.reason)

    async def close(self) -> None:
        """End the loop; open requests end with an error."""
        if self._dead is None:
            self._die(None, "the replica is shutting down")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _command(self, command: Command) -> None:
        self._commands.append(command)
        self._wake.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="engine-loop")

    async def _run(self) -> None:
        while self._dead is None:
            if not self._commands and not self._open:
                self._wake.clear()
                await self._wake.wait()
                continue
            commands, self._commands = tuple(self._commands), []
            self.steps += 1
            started = time.monotonic()
            try:
                emitted = await asyncio.wait_for(self._hosts.advance(self.steps, commands), self._step_timeout_s)
            except TimeoutError as error:
                self._die(error, f"step {self.steps} did not end within {self._step_timeout_s:g} s")
                return
            except Exception as error:
                self._die(error, f"step {self.steps} failed: {_last_line(error)}")
                return
            self.last_step_s = time.monotonic() - started
            for one in emitted:
                self._deliver(one)

    def _deliver(self, one: Emitted) -> None:
        ticket = self._open.get(one.request_id)
        if ticket is None:
            return
        if one.finish_reason is not None:
            del self._open[one.request_id]
        ticket.put(one)

    def _die(self, error: BaseException | None, reason: str) -> None:
        if error is not None:
            logger.error("the engine has stopped: %s", reason, exc_info=error)
        self._dead = EngineDead(reason)
        for ticket in self._open.values():
            ticket.put(EngineDead(reason))
        self._open.clear()
        self._commands.clear()


def _last_line(error: BaseException) -> str:
    """The end of an error's text: of a remote one, that is the line that says what happened there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
