"""What a stack is like now, in the same words on every platform. Each is a JSON value of the daily commands. Pure."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

ServiceState = Literal["ready", "starting", "failed", "paused", "absent"]
RunState = Literal["pending", "running", "succeeded", "failed", "stopped", "absent"]
OVER: tuple[RunState, ...] = ("succeeded", "failed", "stopped")
"""States that a run does not leave by itself."""

WELL, NOT_UP, NOT_WELL = 0, 3, 4
"""Exit codes of `status`: all is as declared; nothing runs; something is not as declared."""


class _Seen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PoolSeen(_Seen):
    """A pool. A slice is there when all its hosts are."""

    name: str
    generation: str
    topology: str
    slices_there: int
    slices_min: int
    slices_max: int


class ServiceSeen(_Seen):
    """A service. `reason` is the deepest one known, and empty where it is ready."""

    name: str
    pool: str
    state: ServiceState
    replicas_ready: int
    replicas_wanted: int
    """At least."""
    replicas_most: int | None = None
    """Where more may come while there is much to do."""
    url: str
    reason: str = ""


class RunSeen(_Seen):
    """A run: of a declared job, or `submitted` from somebody's working directory. `run` names it to every command."""

    name: str
    run: str
    pool: str
    state: RunState
    progress: str = ""
    """`step 40 of 120`, where it is known."""
    reason: str = ""
    submitted: bool = False
    exit_code: int | None = None
    """Of its command, once it has ended, where that is known."""


class StackSeen(_Seen):
    """All of it. `reason` says why nothing is up."""

    stack: str
    platform: Literal["local", "gke"]
    up: bool
    reason: str = ""
    pools: tuple[PoolSeen, ...] = ()
    services: tuple[ServiceSeen, ...] = ()
    jobs: tuple[RunSeen, ...] = ()

    @property
    def exit_code(self) -> int:
        """0, 3 or 4. A run that somebody submitted or stopped does not count: nothing was declared of it. Of the runs
        of a schedule the newest counts."""
        if not self.up:
            return NOT_UP
        fine = all(service.state in ("ready", "paused") for service in self.services)
        newest = {run.name: run for run in reversed(self.jobs) if not run.submitted}
        fine = fine and not any(run.state == "failed" for run in newest.values())
        return WELL if fine else NOT_WELL


class LogLine(_Seen):
    """One line of a log. `source` is the replica, pod or run that wrote it."""

    source: str
    line: str
