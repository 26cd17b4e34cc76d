"""What a RayJob's own words say about its run. Pure.

Statuses: ray-operator/apis/ray/v1/rayjob_types.go of KubeRay 1.5 and 1.6.
"""

import re

from infra.plan.identity import QUEUE_LABEL
from infra.platforms.gke.found import Object
from infra.platforms.state_seen import RunSeen, RunState
from workloads.spec.run import STOPPED_ANNOTATION

SUBMITTED_LABEL = "tpu-ray/submitted"
"""On RayJobs that are not of the stack file."""
POOL_ANNOTATION = "tpu-ray/pool"
ENDED: dict[str, RunState] = {"SUCCEEDED": "succeeded", "STOPPED": "stopped", "FAILED": "failed"}
STEP = re.compile(r"\bstep (\d+)/(\d+)\b")


def run_seen(name: str, job: Object, pool: str = "") -> RunSeen:
    """The run of a RayJob, whose declared job is `name`."""
    metadata, status = job["metadata"], job.get("status") or {}
    state, reason = _state(job)
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return RunSeen(
        name=name,
        run=metadata["name"],
        pool=pool or annotations.get(POOL_ANNOTATION, ""),
        state=state,
        reason=reason or (str(status.get("message") or "") if state == "failed" else ""),
        submitted=SUBMITTED_LABEL in labels,
    )


def _state(job: Object) -> tuple[RunState, str]:
    status, metadata = job.get("status") or {}, job["metadata"]
    where, ray = status.get("jobDeploymentStatus", ""), status.get("jobStatus", "")
    if where in ("Failed", "ValidationFailed"):
        return "failed", ": ".join(word for word in (status.get("reason"), status.get("message")) if word)
    if where == "Complete" or (where == "Running" and ray in ENDED):
        return ENDED.get(ray, "succeeded"), ""
    if STOPPED_ANNOTATION in (metadata.get("annotations") or {}):
        return "stopped", ""
    if where in ("Suspended", "Suspending") or (job.get("spec") or {}).get("suspend"):
        queue = (metadata.get("labels") or {}).get(QUEUE_LABEL)
        return "pending", f"it waits in queue {queue}" if queue else "it is suspended"
    if where == "Running" and ray == "RUNNING":
        return "running", ""
    return "pending", "" if where else "KubeRay has not looked at it: is the Ray operator add-on of the cluster on?"


def step_in(log: str) -> str:
    """`step 40 of 120`, from the end of the bundled recipe's output; empty where it says none."""
    found = STEP.findall(log)
    return f"step {found[-1][0]} of {found[-1][1]}" if found else ""
