"""The verbs of every day, which each platform has: see, follow a log, stop, submit. And the names that they take."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from infra.platforms.state_seen import LogLine, RunSeen, StackSeen
from infra.stack import Problem, StackError, StackSpec
from workloads.spec.nearest import nearest
from workloads.spec.submitted import SubmittedLaunch

Say = Callable[[str], None]


@dataclass(frozen=True)
class Submission:
    """What somebody runs from the working directory. `package` is that directory as a zip file."""

    launch: SubmittedLaunch
    package: bytes
    on_driver: bool
    """Whether the command runs once, as a driver beside Ray's head, and not on every host of a slice."""


class Daily(Protocol):
    """One stack, as it is now. Every method raises PlatformError where it cannot be asked."""

    def see(self) -> StackSeen:
        """Everything about it; what is not up is said, not raised."""

    def runs(self) -> tuple[RunSeen, ...]:
        """Declared runs in the stack file's order, then those that were submitted."""

    def service_log(self, service: str, lines: int, follow: bool) -> Iterator[LogLine]:
        """The last lines of a service's replicas, and with `follow` all that come, without end."""

    def run_log(self, run: str, lines: int, follow: bool) -> Iterator[LogLine]:
        """The last lines of a run, and with `follow` all that come until it is over."""

    def stop(self, run: str, say: Say, timeout_s: float) -> RunSeen:
        """End a run and wait for its end; one that is over stays as it is."""

    def submit(self, submission: Submission, say: Say, timeout_s: float) -> RunSeen:
        """Start it; returns when its command's log can be followed."""

    def result(self, run: str) -> RunSeen:
        """A run whose log has ended, with the exit code of its command."""

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True)
class Named:
    """What a name means: a service, or a run."""

    kind: str
    """`service` or `run`."""
    name: str


def service_named(stack: StackSpec, name: str) -> str:
    """The service of that name.

    Raises:
        StackError: there is none.
    """
    known = tuple(service.name for service in stack.services)
    if name not in known:
        raise _unknown("SERVICE", name, "the stack has no service of this name", known)
    return name


def run_named(runs: Sequence[RunSeen], name: str) -> str:
    """The run that is called so, by itself or by its job.

    Raises:
        StackError: there is none.
    """
    wanted = name.removeprefix("job/")
    for run in runs:
        if wanted in (run.run, run.name):
            return run.run
    known = tuple(dict.fromkeys(word for run in runs for word in (run.name, run.run)))
    raise _unknown("JOB", name, "there is no job and no run of this name", known)


def named(stack: StackSpec, runs: Sequence[RunSeen], name: str) -> Named:
    """The service or the run that is called so; where both are, `service/NAME` and `job/NAME` tell them apart.

    Raises:
        StackError: there is none, or both.
    """
    services = tuple(service.name for service in stack.services)
    if name.startswith("service/"):
        return Named("service", service_named(stack, name.removeprefix("service/")))
    if name.startswith("job/"):
        return Named("run", run_named(runs, name))
    mine = [run for run in runs if name in (run.run, run.name)]
    if name in services and mine:
        forms = (f"service/{name}", f"job/{name}")
        raise StackError([Problem(key="NAME", value=name, reason="a service and a job are called so", allowed=forms)])
    if name in services:
        return Named("service", name)
    if mine:
        return Named("run", mine[0].run)
    known = tuple(dict.fromkeys((*services, *(word for run in runs for word in (run.name, run.run)))))
    raise _unknown("NAME", name, "the stack has no service, job or run of this name", known)


def pool_named(stack: StackSpec, name: str) -> str:
    """The pool of that name.

    Raises:
        StackError: there is none.
    """
    known = tuple(pool.name for pool in stack.pools)
    if name not in known:
        raise _unknown("--pool", name, "the stack has no pool of this name", known)
    return name


def _unknown(key: str, name: str, reason: str, known: tuple[str, ...]) -> StackError:
    return StackError([Problem(key=key, value=name, reason=reason, allowed=known, nearest=nearest(name, known))])
