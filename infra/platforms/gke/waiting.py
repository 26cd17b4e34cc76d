"""Waiting until a RayService answers: progress, one deadline, and the deepest reason where it does not."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import httpx

from infra.plan.health import BUNDLED, Health
from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes, look_up
from infra.platforms.gke.look import Wanted, blocked_by, look
from infra.platforms.gke.missing_secret import next_step
from infra.platforms.gke.patience import Look, Say, Wait, wait_for

SERVE_PORT = 8000


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
    return look(expected.wanted, found).there and not unanswered(kubernetes, expected)


def wait_until_ready(kubernetes: Kubernetes, expected: Expected, say: Say) -> str:
    """Wait until the service answers; its URL inside the cluster. An API server that is away is waited for too.

    Raises:
        PlatformError: it will never come (the deepest reason is quoted), or the deadline passed.
    """
    wait = Wait(
        f"service {expected.wanted.name}", expected.timeout_s, partial(_failed, expected), partial(_late, expected)
    )
    wait_for(wait, lambda: _look(kubernetes, expected), say)
    return service_url(expected.wanted)


def _look(kubernetes: Kubernetes, expected: Expected) -> Look:
    found = look_up(kubernetes, expected.wanted.namespace, expected.wanted.name)
    seen = look(expected.wanted, found)
    if seen.there and (missing := unanswered(kubernetes, expected)):
        # What Serve says of an answer that is missing is nothing; everything else is known better by `blocked_by`.
        return Look(missing)
    return replace(seen, blocked=blocked_by(expected.wanted, found))


def _failed(expected: Expected, failure: str) -> PlatformError:
    return PlatformError(
        f"service {expected.wanted.name} failed",
        key="tpu-ray:services",
        wanted=_words(expected),
        found=failure,
        next_step=next_step(failure, expected.wanted.namespace, "correct what the reason names, then `up` again"),
    )


def _late(expected: Expected, reason: str, waited_s: float) -> PlatformError:
    return PlatformError(
        f"service {expected.wanted.name} does not answer after {waited_s:.0f} s",
        key="tpu-ray:services",
        wanted=_words(expected),
        found=reason,
        next_step="mend what the reason names, or raise the service's `ready_timeout_s`; then `up` again",
    )


def _words(expected: Expected) -> str:
    return f"{expected.health.wanted(expected.wanted.name)}, on {expected.slices}"
