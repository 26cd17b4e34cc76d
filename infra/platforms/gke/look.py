"""Where a RayService stands, read from what its cluster says: how far it is, or why it will never come. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.plan.mark import mark_name
from infra.platforms.gke.found import Found, Object, when, written_at
from infra.platforms.gke.patience import Look
from infra.platforms.gke.pods import NO_PODS, hosts_running, how_far, never_running, why_not_running
from infra.platforms.serve_reason import NO_REASON, deepest_reason

GIVEN_UP = ("DEPLOY_FAILED", "UNHEALTHY")
"""Statuses of a Serve application that do not become better by waiting."""
REFUSED = ("InvalidRayServiceSpec", "InvalidRayServiceMetadata")
"""Events of KubeRay's about a RayService that it does not take (controllers/ray/utils/constant.go, 1.5 and 1.6)."""


@dataclass(frozen=True)
class Wanted:
    """The service that is waited for. `hosts` are all TPU pods of its replicas."""

    name: str
    namespace: str
    hosts: int
    mark: str = ""
    """The deployment that Serve lists once it has the config waited for (`infra.plan.mark`); empty where the answer of
    the service tells it."""


def look(wanted: Wanted, found: Found) -> Look:
    """Where the service stands."""
    if found.service is None:
        return Look("gone", failure=f"the RayService {wanted.namespace}/{wanted.name} is not there any more")
    refused = _refusal(wanted, found)
    if refused:
        return Look("refused", failure=refused)
    generation = found.service["metadata"].get("generation", 0)
    if found.status.get("observedGeneration", 0) < generation:
        return Look("waiting for KubeRay to see the change")
    coming = found.coming()
    cluster = coming.get("rayClusterName", "")
    pods = found.pods_of(cluster)
    failure = next(never_running(found, cluster, pods, wanted.hosts), None)
    if failure:
        return Look("pods", failure=failure)
    application = coming.get("applicationStatuses", {}).get(wanted.name)
    if application is None:
        return Look(how_far(wanted.hosts, found, cluster, pods))
    if old := _old_config(wanted, coming):
        return old
    status, reason = application.get("status", ""), deepest_reason(_messages(application))
    if status in GIVEN_UP:
        return Look(status, failure=f"{status}: {reason}")
    # Serve waits for hosts without an end and does not know what they wait for; of one more it may not have heard.
    if hosts_running(pods) < wanted.hosts:
        return Look(how_far(wanted.hosts, found, cluster, pods))
    upgrading = bool(found.status.get("pendingServiceStatus", {}).get("rayClusterName"))
    if status == "RUNNING" and not upgrading and _condition(found, "Ready").get("status") == "True":
        return Look("RUNNING", there=True)
    said = "" if reason == NO_REASON else f": {reason.splitlines()[0][:200]}"
    return Look(f"Serve is {status or 'starting'}{said}")


def blocked_by(wanted: Wanted, found: Found) -> str:
    """The deepest reason known for a service that has not come in time: of a pod, of its cluster, of KubeRay."""
    cluster = found.coming().get("rayClusterName", "")
    pods = found.pods_of(cluster)
    application = found.coming().get("applicationStatuses", {}).get(wanted.name)
    waits = next((f"pod {pod['metadata']['name']} {why}" for pod in pods if (why := why_not_running(found, pod))), "")
    if application:
        if old := _old_config(wanted, found.coming()):
            return old.failure or waits or old.progress
        status, reason = application.get("status") or "starting", deepest_reason(_messages(application))
        said = f"Serve is {status}: {reason}"
        if status in GIVEN_UP or not waits:
            return said
        # What a pod waits for lies deeper: Serve says of it no more than that a replica takes long.
        return waits if reason == NO_REASON else f"{waits}; {said}"
    if waits:
        return waits
    if found.service is None:
        return "the RayService is not there"
    for kind, name in (("RayCluster", cluster), ("RayService", wanted.name)):
        for event in found.warnings_about(kind, name):
            return f"{event.get('reason', '')}: {event.get('message', '')}"
    if not found.status:
        return "KubeRay has not looked at the RayService: is the Ray operator add-on of the cluster on?"
    return str(_condition(found, "Ready").get("message") or how_far(wanted.hosts, found, cluster, pods))


def stuck(found: Found, cluster: str) -> str:
    """What the first pod of a Ray cluster that does not run waits for, or what the cluster's pods cannot be made for;
    empty where nothing is wrong."""
    for pod in found.pods_of(cluster):
        if why := why_not_running(found, pod):
            return f"pod {pod['metadata']['name']} {why}"
    for event in found.warnings_about("RayCluster", cluster):
        if event.get("reason") in NO_PODS:
            return f"{event['reason']}: {event.get('message', '')}"
    return ""


def _old_config(wanted: Wanted, coming: Object) -> Look | None:
    """What is known while the statuses are about another config than the one waited for; None once it is that one."""
    if not wanted.mark:
        return None
    told = coming.get("applicationStatuses", {}).get(mark_name(wanted.name)) or {}
    if wanted.mark in told.get("serveDeploymentStatuses", {}):
        return None
    if told.get("status") in GIVEN_UP:
        why = f"{told['status']}: {deepest_reason(_messages(told))}"
        return Look("mark", failure=f"{why} (application {mark_name(wanted.name)}, which needs tpu-ray in the image)")
    return Look("waiting for Serve to get the change")


def _refusal(wanted: Wanted, found: Found) -> str | None:
    """Why KubeRay does not take the RayService: 1.6 says it in a condition, 1.5 only by an event."""
    assert found.service is not None
    for event in found.warnings_about("RayService", wanted.name):
        # A second's allowance: an event's time has no fraction.
        if event.get("reason") in REFUSED and when(event) >= written_at(found.service).replace(microsecond=0):
            return f"KubeRay refuses it: {event.get('message', '')}"
    condition = _condition(found, "Ready")
    if condition.get("reason") == "InitializingTimeout":
        return f"KubeRay has given it up: {condition.get('message', '')}"
    return None


def _messages(application: Object) -> Iterator[str]:
    """What Serve says, the deepest first."""
    for deployment in application.get("serveDeploymentStatuses", {}).values():
        yield str(deployment.get("message") or "")
    yield str(application.get("message") or "")


def _condition(found: Found, kind: str) -> Object:
    return next((c for c in found.status.get("conditions", []) if c.get("type") == kind), {})
