"""Waiting until a RayJob has succeeded: progress, one deadline, and the deepest reason where it has not."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.missing_secret import next_step
from infra.platforms.gke.run_found import FoundRun, look_up_run
from infra.platforms.gke.run_look import RunLook, WantedRun, look_at_run, run_blocked_by

SETTLE_S = 10.0
"""How long pods have to say that they never run. What KubeRay says of the run itself is for good."""
SLACK_S = 300.0
"""How much longer a run is waited for than its own limit: KubeRay counts from when it makes the Ray cluster."""
PAUSE_S = 2.0
TOLD_EVERY_S = 15.0

Say = Callable[[str], None]


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
    began = told = time.monotonic()
    failing_since: float | None = None
    while True:
        found, seen = _look(kubernetes, expected)
        now = time.monotonic()
        if seen.succeeded:
            return
        if seen.failure is None:
            failing_since = None
        elif failing_since is None:
            failing_since = now
        if seen.failure is not None and failing_since is not None and (seen.final or now - failing_since >= SETTLE_S):
            raise _failed(expected, seen.failure)
        if now - began > expected.timeout_s:
            raise _late(expected, found, seen, now - began)
        if now - told > TOLD_EVERY_S:
            told = now
            say(f"run {expected.wanted.name} ({now - began:.0f} s): {seen.failure or seen.progress}")
        time.sleep(PAUSE_S)


def _look(kubernetes: Kubernetes, expected: ExpectedRun) -> tuple[FoundRun | None, RunLook]:
    try:
        found = look_up_run(kubernetes, expected.wanted.namespace, expected.wanted.name)
        return found, look_at_run(expected.wanted, found)
    except httpx.HTTPError as error:
        return None, RunLook(f"the API server cannot be asked: {error or type(error).__name__}")


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


def _late(expected: ExpectedRun, found: FoundRun | None, seen: RunLook, waited_s: float) -> PlatformError:
    return PlatformError(
        f"run {expected.wanted.name} is not over after {waited_s:.0f} s",
        key="tpu-ray:jobs",
        wanted=_words(expected),
        found=run_blocked_by(expected.wanted, found) if found else seen.progress,
        next_step="another `up` waits again; or mend what the reason names",
    )


def _words(expected: ExpectedRun) -> str:
    return f"the run ends with success, on {expected.slices}"
