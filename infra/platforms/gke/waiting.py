"""Waiting until a RayService answers: progress, one deadline, and the deepest reason where it does not."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from infra.plan.health import BUNDLED, Health
from infra.platforms.errors import PlatformError
from infra.platforms.gke.found import Found
from infra.platforms.gke.kubernetes_api import Kubernetes, look_up
from infra.platforms.gke.look import Look, Wanted, blocked_by, look
from infra.platforms.gke.missing_secret import next_step

SERVE_PORT = 8000
SETTLE_S = 10.0
"""How long a failure has to stand. After a change KubeRay reports the old application's status once more before it
sends the new one to Serve (reconcileServe reads first, then writes)."""
PAUSE_S = 2.0
TOLD_EVERY_S = 15.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Expected:
    """The service, what it must answer with, and its slices in words."""

    wanted: Wanted
    mark: str
    """`ServiceLaunch.mark`: only an answer with it is the new service's. Empty where `wanted.mark` tells it."""
    slices: str
    timeout_s: float
    health: Health = BUNDLED


def service_url(wanted: Wanted) -> str:
    """Base URL of a service inside the cluster."""
    return f"http://{wanted.name}-serve-svc.{wanted.namespace}.svc.cluster.local:{SERVE_PORT}/{wanted.name}"


def unanswered(kubernetes: Kubernetes, expected: Expected) -> str:
    """Why the service does not answer; empty when it does, with what it was told to serve.

    Raises:
        httpx.HTTPError: the API server cannot be reached.
    """
    wanted = expected.wanted
    path = f"{wanted.name}{expected.health.path}"
    answer = kubernetes.through_service(wanted.namespace, f"{wanted.name}-serve-svc", SERVE_PORT, path)
    told = _object(answer)
    api_servers_own = told.get("kind") == "Status" and told.get("apiVersion") == "v1"
    if api_servers_own or not expected.health.is_answer(answer.status_code, answer.text):
        return f"GET /{path} is {answer.status_code}: {answer.text[:300]}"
    if expected.mark and told.get("mark") != expected.mark:
        return f"GET /{path} is still the answer of what was served before"
    return ""


def _object(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object of an answer; empty where it is none."""
    try:
        told = answer.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def is_ready(kubernetes: Kubernetes, expected: Expected) -> bool:
    """Whether the service answers now."""
    found = look_up(kubernetes, expected.wanted.namespace, expected.wanted.name)
    return look(expected.wanted, found).ready and not unanswered(kubernetes, expected)


def wait_until_ready(kubernetes: Kubernetes, expected: Expected, say: Say) -> str:
    """Wait until the service answers; its URL inside the cluster. An API server that is away is waited for too.

    Raises:
        PlatformError: it will never come (the deepest reason is quoted), or the deadline passed.
    """
    began = told = time.monotonic()
    failing_since: float | None = None
    while True:
        found, seen = _look(kubernetes, expected)
        now = time.monotonic()
        if seen.ready:
            return service_url(expected.wanted)
        if seen.failure is None:
            failing_since = None
        elif failing_since is None:
            failing_since = now
        elif now - failing_since >= SETTLE_S:
            raise _failed(expected, seen.failure)
        if now - began > expected.timeout_s:
            raise _late(expected, found, seen, now - began)
        if now - told > TOLD_EVERY_S:
            told = now
            say(f"service {expected.wanted.name} ({now - began:.0f} s): {seen.failure or seen.progress}")
        time.sleep(PAUSE_S)


def _look(kubernetes: Kubernetes, expected: Expected) -> tuple[Found | None, Look]:
    try:
        found = look_up(kubernetes, expected.wanted.namespace, expected.wanted.name)
        seen = look(expected.wanted, found)
        if seen.ready:
            missing = unanswered(kubernetes, expected)
            seen = Look(missing) if missing else seen
        return found, seen
    except httpx.HTTPError as error:
        return None, Look(f"the API server cannot be asked: {error or type(error).__name__}")


def _failed(expected: Expected, failure: str) -> PlatformError:
    return PlatformError(
        f"service {expected.wanted.name} failed",
        key="tpu-ray:services",
        wanted=_words(expected),
        found=failure,
        next_step=next_step(failure, expected.wanted.namespace, "correct what the reason names, then `up` again"),
    )


def _late(expected: Expected, found: Found | None, seen: Look, waited_s: float) -> PlatformError:
    # What Serve says of an answer that is missing is nothing; everything else is known better by `blocked_by`.
    reason = blocked_by(expected.wanted, found) if found and not seen.progress.startswith("GET ") else seen.progress
    return PlatformError(
        f"service {expected.wanted.name} does not answer after {waited_s:.0f} s",
        key="tpu-ray:services",
        wanted=_words(expected),
        found=reason,
        next_step="mend what the reason names, or raise the service's `ready_timeout_s`; then `up` again",
    )


def _words(expected: Expected) -> str:
    return f"{expected.health.wanted(expected.wanted.name)}, on {expected.slices}"
