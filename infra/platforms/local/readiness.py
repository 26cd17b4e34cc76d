"""Whether a service answers, and if it does not, the deepest reason that Serve knows."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from infra.plan.health import BUNDLED, Health
from infra.platforms.errors import PlatformError
from infra.platforms.local.applications import FAILED, applications, delete_application, running
from infra.platforms.local.folders import Folders
from infra.platforms.serve_reason import deepest_reason

UNKNOWN = "NOT_STARTED"
UNKNOWN_S = 60.0
"""How long Serve may not know an application that it was given."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Expected:
    """The service that is waited for, and the slice that a replica of it takes, in words."""

    name: str
    slices: str
    ray_head_resource: str
    timeout_s: float
    health: Health = BUNDLED


def service_url(http_port: int, name: str) -> str:
    return f"http://127.0.0.1:{http_port}/{name}"


def answers(url: str, timeout_s: float = 5, health: Health = BUNDLED) -> bool:
    """Whether the service below `url` answers as one that serves."""
    try:
        with httpx.Client(trust_env=False, timeout=timeout_s) as client:
            answer = client.get(f"{url}{health.path}")
            return health.is_answer(answer.status_code, answer.text)
    except httpx.HTTPError:
        return False


def wait_until_ready(stack: str, service: Expected, say: Say) -> str:
    """Wait until the service answers; its URL.

    Where it fails for good and no replica of it runs, the application is taken away again, so that it holds no slice
    and the next `up` tries anew.

    Raises:
        PlatformError: Serve gave up (its deepest reason is quoted), or the deadline passed.
    """
    state, _ = running(stack)
    url = service_url(state.spec.http_port, service.name)
    began = last = time.monotonic()
    while True:
        application = applications(stack).get(service.name)
        condition = str(application["status"]) if application else UNKNOWN
        if condition == "RUNNING" and answers(url, health=service.health):
            return url
        waited_s = time.monotonic() - began
        lost = condition == UNKNOWN and waited_s > UNKNOWN_S
        if condition in FAILED or lost or waited_s > service.timeout_s:
            error = _failure(stack, service, application, condition, waited_s)
            # An application that cannot even be built is listed without its old replicas, which go on answering.
            if not (_has_running_replica(application) or answers(url, health=service.health)):
                delete_application(stack, service.name)
            raise error
        if time.monotonic() - last > 10:
            last = time.monotonic()
            say(f"service {service.name} is {condition} ({waited_s:.0f} s): {progress_of(application)}")
        time.sleep(0.5)


def _failure(
    stack: str, service: Expected, application: Mapping[str, Any] | None, condition: str, waited_s: float
) -> PlatformError:
    reason = reason_of(application)
    logs = " ".join(sorted(set(_log_files(application))))
    where = f"\n    log of the replica: {Folders.of(stack).ray_temp}/*/session_latest/logs/{logs}" if logs else ""
    found = f"{condition}: {reason}{where}\n    slices: {slices_now(stack, service.ray_head_resource)}"
    wanted = f"{service.health.wanted(service.name)}, on {service.slices}"
    if condition in FAILED:
        next_step = "correct what the reason names in `tpu-ray:services` (or in the code), then `up` again"
        return PlatformError(
            f"service {service.name} failed", wanted=wanted, found=found, next_step=next_step, key="tpu-ray:services"
        )
    return PlatformError(
        f"service {service.name} does not answer after {waited_s:.0f} s",
        key="tpu-ray:services",
        wanted=wanted,
        found=found,
        next_step="free or add a slice of its pool in `tpu-ray:pools`, or raise the service's `ready_timeout_s`",
    )


def reason_of(application: Mapping[str, Any] | None) -> str:
    """The cause behind Serve's messages about an application."""
    if application is None:
        return "Serve does not know the application"
    return deepest_reason(_messages(application))


def _messages(application: Mapping[str, Any]) -> Iterator[str]:
    """Every message, the deepest first: replicas', deployments', the application's."""
    deployments = application.get("deployments", {}).values()
    for deployment in deployments:
        for replica in _replicas(deployment):
            yield str(replica.get("message") or "")
    for deployment in deployments:
        yield str(deployment.get("message") or "")
    yield str(application.get("message") or "")


def progress_of(application: Mapping[str, Any] | None) -> str:
    """One line about a service that is on its way: its newest message, else what its replicas do."""
    deployments = (application or {}).get("deployments", {})
    if any(_messages(application or {})):
        return reason_of(application).splitlines()[0][:200]
    states = [str(replica["state"]) for d in deployments.values() for replica in d.get("replicas", [])]
    return ", ".join(f"{states.count(state)} replica {state}" for state in dict.fromkeys(states)) or "no replica yet"


def _replicas(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The deployment's replicas, and those that died lately."""
    return [*deployment.get("replicas", []), *deployment.get("recent_dead_replicas", [])]


def _log_files(application: Mapping[str, Any] | None) -> Iterator[str]:
    for deployment in (application or {}).get("deployments", {}).values():
        for replica in _replicas(deployment):
            if replica.get("log_file_path"):
                yield str(replica["log_file_path"]).lstrip("/")


def _has_running_replica(application: Mapping[str, Any] | None) -> bool:
    return any(
        replica.get("state") == "RUNNING"
        for deployment in (application or {}).get("deployments", {}).values()
        for replica in deployment.get("replicas", [])
    )


def slices_now(stack: str, ray_head_resource: str) -> str:
    """How many slices of that shape the cluster has and how many are taken, in words."""
    try:
        _, dashboard = running(stack)
        status = dashboard.get("/api/cluster_status")["data"]["clusterStatus"]
        used, total = status["loadMetricsReport"]["usage"].get(ray_head_resource, (0, 0))
    except (PlatformError, KeyError, TypeError):
        return "unknown"
    return f"{total:g} of this shape, {used:g} of them taken"
