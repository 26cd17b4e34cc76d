"""Where a RayJob stands, read from what its cluster says: how far it is, that it succeeded, or why it never will. Pure.

States: ray-operator/apis/ray/v1/rayjob_types.go and controllers/ray/rayjob_controller.go of KubeRay 1.5 and 1.6. A run
that is over keeps its RayJob; only the Ray cluster goes.
"""

import re
from dataclasses import dataclass

from infra.plan.identity import QUEUE_LABEL
from infra.platforms.gke.patience import Look
from infra.platforms.gke.pods import ADMISSION, how_far, never_running, why_not_running
from infra.platforms.gke.run_found import FoundRun
from infra.platforms.serve_reason import cause_of

REFUSED = ("InvalidRayJobSpec", "InvalidRayJobMetadata", "InvalidRayJobStatus")
TOO_LATE = ("DeadlineExceeded", "PreRunningDeadlineExceeded")
SHOWN_LINES = 15


@dataclass(frozen=True)
class WantedRun:
    """The run that is waited for. `hosts` are the TPU pods of its slice."""

    name: str
    namespace: str
    hosts: int


def look_at_run(wanted: WantedRun, found: FoundRun) -> Look:
    """Where the run stands."""
    if found.run is None:
        return _failed(f"the RayJob {wanted.namespace}/{wanted.name} is not there any more")
    state, status = str(found.status.get("jobDeploymentStatus") or ""), found.status
    if state == "ValidationFailed":
        return _failed(f"KubeRay refuses it: {status.get('message') or _refusal(wanted, found)}")
    if state == "Complete" and status.get("jobStatus") == "SUCCEEDED":
        return Look("SUCCEEDED", there=True)
    if state == "Complete":
        return _failed(f"it was stopped: Ray says {status.get('jobStatus')}{_said(found)}")
    if state == "Failed":
        return _failed(_why_failed(found))
    if state in ("Suspended", "Suspending"):
        # Kueue writes the field that asks for it.
        if QUEUE_LABEL in found.run["metadata"].get("labels", {}):
            return Look(f"waits in the queue: {found.queue or 'not admitted yet'}")
        return _failed("it is suspended") if found.run["spec"].get("suspend") else Look("begins again")
    if state == "Retrying":
        return Look(f"failed, and begins again: {_last_words(found, 1)}")
    cluster = str(status.get("rayClusterName") or "")
    pods = found.pods_of(cluster)
    for event in found.warnings_about("RayJob", wanted.name):
        if event.get("reason") == "FailedToCreateRayCluster" and ADMISSION.search(event.get("message", "")):
            return Look("refused", failure=f"{event['reason']}: {event['message']}")
    never = next(never_running(found, cluster, pods, wanted.hosts), None)
    if never:
        return Look("pods", failure=never)
    if state == "Running":
        line = _last_words(found, 1)
        return Look(f"Ray says {status.get('jobStatus') or 'nothing yet'}" + (f": {line}" if line else ""))
    if not state:
        return Look("waiting for KubeRay to see it")
    return Look(how_far(wanted.hosts, found, cluster, pods))


def run_blocked_by(wanted: WantedRun, found: FoundRun) -> str:
    """The deepest reason known for a run that is not over in time: of a pod, of KubeRay, of the driver."""
    if found.run is None:
        return "the RayJob is not there"
    if not found.status:
        return "KubeRay has not looked at the RayJob: is the Ray operator add-on of the cluster on?"
    for pod in found.pods_of(str(found.status.get("rayClusterName") or "")):
        if why := why_not_running(found, pod):
            return f"pod {pod['metadata']['name']} {why}"
    for event in found.warnings_about("RayJob", wanted.name):
        return f"{event.get('reason', '')}: {event.get('message', '')}"
    return look_at_run(wanted, found).progress + _said(found)


def _failed(reason: str) -> Look:
    return Look(reason, failure=reason, final=True)


def _refusal(wanted: WantedRun, found: FoundRun) -> str:
    events = found.warnings_about("RayJob", wanted.name)
    return next(
        (str(event.get("message")) for event in events if event.get("reason") in REFUSED), "it does not say why"
    )


def _why_failed(found: FoundRun) -> str:
    reason, message = str(found.status.get("reason") or "Failed"), str(found.status.get("message") or "")
    first = message.splitlines()[0] if message else "KubeRay gave no message"
    if reason in TOO_LATE:
        return f"{reason}: {first}{_said(found)}"
    deepest = _deepest(found.log) or _deepest(message)
    return f"{reason}: {deepest or first}" + (_said(found) if not deepest else "")


def _deepest(text: str) -> str:
    """The driver's own error: what a traceback ends with, or its last line with `error: `; empty where it has none."""
    plain = _plain(text)
    told = [line.removeprefix("error: ") for line in plain if line.startswith("error: ")]
    return cause_of("\n".join(plain)) or (told[-1] if told else "")


def _said(found: FoundRun) -> str:
    words = _last_words(found, SHOWN_LINES)
    return f"\n    end of its log:\n    {words}" if words else ""


def _last_words(found: FoundRun, count: int) -> str:
    """The driver's last lines. Where the pod that showed them is gone, KubeRay has some in its message."""
    behind = str(found.status.get("message") or "").partition("\n")[2]
    lines = [line for line in _plain(found.log or behind) if line.strip()]
    return "\n    ".join(lines[-count:])


def _plain(text: str) -> list[str]:
    """Lines without colours and without Ray's `(Worker pid=.., ip=..)` in front."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines()
    return [re.sub(r"^\(\w+ pid=[^)]*\) ?", "", line) for line in lines]
