"""Waiting until a RayJob has succeeded: progress, one deadline, and the deepest reason where it has not."""

from dataclasses import dataclass, replace
from functools import partial

from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.missing_secret import next_step
from infra.platforms.gke.patience import Look, Say, Wait, wait_for
from infra.platforms.gke.run_found import look_up_run
from infra.platforms.gke.run_look import WantedRun, look_at_run, run_blocked_by

SLACK_S = 300.0
"""How much longer a run is waited for than its own limit: KubeRay counts from when it makes the Ray cluster."""


@dataclass(frozen=True)
class ExpectedRun:
    """The run, its slice in words, and how long it is waited for: its `timeout_s` for each try, and SLACK_S."""

    wanted: WantedRun
    slices: str
    timeout_s: float


def wait_for_run(kubernetes: Kubernetes, expected: ExpectedRun, say: Say) -> None:
    """Wait until the run has succeeded. An API server that is away is waited for too.

    Raises:
        PlatformError: it has failed or never begins (the deepest reason is quoted), or the deadline passed.
    """
    wait = Wait(f"run {expected.wanted.name}", expected.timeout_s, partial(_failed, expected), partial(_late, expected))
    wait_for(wait, lambda: _look(kubernetes, expected), say)


def _look(kubernetes: Kubernetes, expected: ExpectedRun) -> Look:
    found = look_up_run(kubernetes, expected.wanted.namespace, expected.wanted.name)
    return replace(look_at_run(expected.wanted, found), blocked=run_blocked_by(expected.wanted, found))


def _failed(expected: ExpectedRun, failure: str) -> PlatformError:
    suspended = failure == "it is suspended"
    again = "correct what the reason names, then begin it again with another `run:` of the job, and `up`"
    again = next_step(failure, expected.wanted.namespace, again)
    return PlatformError(
        f"run {expected.wanted.name} did not succeed",
        key="tpu-ray:jobs",
        wanted=_words(expected),
        found=failure,
        next_step="take the job's `suspend: true` back, then `up`" if suspended else again,
    )


def _late(expected: ExpectedRun, reason: str, waited_s: float) -> PlatformError:
    return PlatformError(
        f"run {expected.wanted.name} is not over after {waited_s:.0f} s",
        key="tpu-ray:jobs",
        wanted=_words(expected),
        found=reason,
        next_step="another `up` waits again; or mend what the reason names",
    )


def _words(expected: ExpectedRun) -> str:
    return f"the run ends with success, on {expected.slices}"
