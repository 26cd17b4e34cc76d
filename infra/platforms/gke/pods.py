"""How far the pods of a Ray cluster are, and what keeps them from running. Pure."""

import re
from collections.abc import Iterator

from infra.platforms.gke.found import Found, Object, is_head

NO_PODS = ("FailedToCreateHeadPod", "FailedToCreateWorkerPod", "FailedToCreateRayCluster")
FOREVER = ("InvalidImageName", "CreateContainerConfigError", "ErrImageNeverPull")
"""What a container waits for without end (k8s.io/kubernetes/pkg/kubelet/images and kuberuntime)."""
IMAGE = ("ErrImagePull", "ImagePullBackOff")
NO_SUCH_IMAGE = re.compile(r"not found|manifest unknown|denied|unauthorized|forbidden|does not exist", re.IGNORECASE)
ADMISSION = re.compile(r"admission webhook .* denied the request|failed calling webhook|is forbidden|is invalid")


def never_running(found: Found, cluster: str, pods: list[Object], hosts: int) -> Iterator[str]:
    """What keeps these pods of a Ray cluster, which is to have so many TPU hosts, from ever running."""
    # Events stay for an hour, also when the pods that could not be made are there by now.
    missing = len(pods) <= hosts
    for event in found.warnings_about("RayCluster", cluster) if missing else ():
        if event.get("reason") in NO_PODS and ADMISSION.search(event.get("message", "")):
            yield f"{event['reason']}: {event['message']}"
    for pod in pods:
        for container in _containers(pod):
            waiting = container.get("state", {}).get("waiting", {})
            reason, message = waiting.get("reason", ""), waiting.get("message", "")
            last = " ".join(event.get("message", "") for event in found.warnings_about("Pod", pod["metadata"]["name"]))
            hopeless = reason in IMAGE and NO_SUCH_IMAGE.search(f"{message} {last}")
            if reason in FOREVER or hopeless:
                yield f"pod {pod['metadata']['name']} {_waits(container, found, pod)}"


def how_far(hosts: int, found: Found, cluster: str, pods: list[Object]) -> str:
    """How far a Ray cluster is that has so many TPU hosts."""
    if not cluster:
        return "waiting for KubeRay to make the Ray cluster"
    running = hosts_running(pods)
    head = next((pod for pod in pods if is_head(pod)), None)
    words = f"Ray cluster {cluster}: head {(head or {}).get('status', {}).get('phase', 'missing')}"
    words += f", {running} of {hosts} TPU hosts run"
    stuck = next((why for pod in pods if (why := why_not_running(found, pod))), "")
    return f"{words}; {stuck}" if stuck else words


def hosts_running(pods: list[Object]) -> int:
    """How many of the TPU hosts run."""
    return sum(pod.get("status", {}).get("phase") == "Running" for pod in pods if not is_head(pod))


SCALING = ("FailedScaleUp", "NotTriggerScaleUp")
"""Events of the autoscaler about a pod for which it makes no node; what says more comes first."""


def why_not_running(found: Found, pod: Object) -> str:
    """What a pod waits for, in Kubernetes' words; empty for one that runs."""
    status = pod.get("status", {})
    scheduled: Object = next((c for c in status.get("conditions", []) if c.get("type") == "PodScheduled"), {})
    if scheduled.get("status") == "False":
        told = list(found.warnings_about("Pod", pod["metadata"]["name"]))
        # After a failure the autoscaler rests, and says again and again that it does: why it failed comes first.
        scaling = next(
            (event["message"] for reason in SCALING for event in told if event.get("reason") == reason),
            "",
        )
        return f"cannot be scheduled: {scheduled.get('message', '')}" + (f" ({scaling})" if scaling else "")
    for container in _containers(pod):
        if container.get("state", {}).get("waiting", {}).get("reason") not in (None, "PodInitializing"):
            return _waits(container, found, pod)
    return "" if status.get("phase") in ("Running", "Succeeded") else f"is {status.get('phase', 'new')}"


def _waits(container: Object, found: Found, pod: Object) -> str:
    """Why a container waits; where it has crashed before, how it ended."""
    waiting = container["state"]["waiting"]
    ended = container.get("lastState", {}).get("terminated", {})
    words = f"waits in container {container.get('name')}: {waiting.get('reason')}"
    told = found.warnings_about("Pod", pod["metadata"]["name"])
    # It has found its node since then.
    later = (event.get("message", "") for event in told if event.get("reason") not in ("FailedScheduling", *SCALING))
    said = waiting.get("message") or next(later, "")
    words += f": {said}" if said else ""
    if ended:
        words += f"; it ended before with code {ended.get('exitCode')} ({ended.get('reason')})"
    return words


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
