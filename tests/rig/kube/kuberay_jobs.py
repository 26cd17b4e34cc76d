"""What becomes of a RayJob in the double of KubeRay: its states and words are the operator's.

From its source, ray-operator/controllers/ray of 1.5.1 and 1.6.2: rayjob_controller.go (Reconcile,
updateStatusToSuspendingIfNeeded, checkActiveDeadlineAndUpdateStatusIfNeeded). Nothing runs: a course says how the run
goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.rig.kube.kuberay import KubeRay

Json = dict[str, Any]
JobCourse = Callable[["KubeRay", Json], Json]
"""What becomes of a RayJob that is not suspended: from the object to its status."""
OVER = ("Complete", "Failed", "ValidationFailed")
NOTHING = {"rayClusterName": None, "jobId": None, "message": None, "reason": None, "jobStatus": None}
"""What a suspended RayJob forgets."""


def reconcile_job(kuberay: KubeRay, job: Json) -> None:
    """One look at a RayJob."""
    status, course = job.get("status") or {}, kuberay.job_courses.get(job["metadata"]["name"], begins)
    # A run that is over does not become another, also where it is suspended then.
    if status.get("jobDeploymentStatus") in OVER:
        return
    suspended = job["spec"].get("suspend")
    wanted = {**NOTHING, "jobDeploymentStatus": "Suspended"} if suspended else course(kuberay, job)
    if any(status.get(key) != value for key, value in wanted.items()):
        kuberay.write_status("rayjobs", job, wanted)


def begins(_kuberay: KubeRay, _job: Json) -> Json:
    """KubeRay has seen it; its pods come."""
    return {"jobDeploymentStatus": "Initializing"}


def runs(_kuberay: KubeRay, job: Json) -> Json:
    """The driver runs."""
    return {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "jobId": f"{job['metadata']['name']}-abcde"}


def completes(_kuberay: KubeRay, _job: Json) -> Json:
    """The driver has ended with success."""
    return {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "Job finished successfully."}


def stopped(_kuberay: KubeRay, _job: Json) -> Json:
    """Somebody stopped the driver, e.g. by `ray job stop`."""
    return {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED", "message": "Job was intentionally stopped."}


def fails(log: str, code: int = 1) -> JobCourse:
    """The driver has ended with this code, after it had written this: one message of Ray's (job_supervisor.py)."""
    message = (
        f"Job entrypoint command failed with exit code {code}, last available logs (truncated to 20,000 chars):\n{log}"
    )
    return lambda _kuberay, _job: {
        "jobDeploymentStatus": "Failed",
        "jobStatus": "FAILED",
        "reason": "AppFailed",
        "message": message,
    }


def too_late(_kuberay: KubeRay, job: Json) -> Json:
    """It took longer than its limit."""
    limit = job["spec"]["activeDeadlineSeconds"]
    return {
        "jobDeploymentStatus": "Failed",
        "reason": "DeadlineExceeded",
        "message": "The RayJob has passed the activeDeadlineSeconds. StartTime: 2026-01-01 00:00:00 +0000 UTC. "
        f"ActiveDeadlineSeconds: {limit}",
    }


def refused(message: str) -> JobCourse:
    """Its spec does not pass KubeRay's own checks."""
    return lambda _kuberay, _job: {
        "jobDeploymentStatus": "ValidationFailed",
        "reason": "ValidationFailed",
        "message": message,
    }
