"""One patient wait for what comes about in a cluster: progress, one deadline, and the reason where it does not."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from infra.platforms.errors import PlatformError

SETTLE_S = 10.0
"""How long a failure has to stand that is not final. After a change KubeRay reports the old application's status once
more before it sends the new one to Serve (reconcileServe reads first, then writes), and pods are made again."""
PAUSE_S = 2.0
TOLD_EVERY_S = 15.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Look:
    """One look. `progress` says how far it is, `there` that it has come, `failure` why it never will.

    `final`: a failure that nobody takes back. `blocked`: at the deadline, what it waited for; empty where that is no
    more than `progress`.
    """

    progress: str
    there: bool = False
    failure: str | None = None
    final: bool = False
    blocked: str = ""


@dataclass(frozen=True)
class Wait:
    """What is waited for, in words, for how long, and the errors that end it without it.

    `failed` takes the failure; `late` what it waited for, and how long, in seconds.
    """

    what: str
    timeout_s: float
    failed: Callable[[str], PlatformError]
    late: Callable[[str, float], PlatformError]


def wait_for(wait: Wait, look: Callable[[], Look], say: Say) -> None:
    """Look until it is there. An API server that is away is waited for too.

    Raises:
        PlatformError: a failure stands, or the deadline has passed.
    """
    began = told = time.monotonic()
    failing_since: float | None = None
    while True:
        seen = _look(look)
        now = time.monotonic()
        if seen.there:
            return
        if seen.failure is None:
            failing_since = None
        else:
            failing_since = now if failing_since is None else failing_since
            if seen.final or now - failing_since >= SETTLE_S:
                raise wait.failed(seen.failure)
        if now - began > wait.timeout_s:
            raise wait.late(seen.blocked or seen.progress, now - began)
        if now - told > TOLD_EVERY_S:
            told = now
            say(f"{wait.what} ({now - began:.0f} s): {seen.failure or seen.progress}")
        time.sleep(PAUSE_S)


def _look(look: Callable[[], Look]) -> Look:
    try:
        return look()
    except httpx.HTTPError as error:
        return Look(f"the API server cannot be asked: {error or type(error).__name__}")
