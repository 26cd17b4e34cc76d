"""The end of a run on GKE, by hand.

A run is suspended, not deleted: what Pulumi made and misses it makes anew, and that would start the run again. KubeRay
suspends in whatever state a run is, also while it waits for its slice, and takes its Ray cluster away at once, where a
run that is over keeps its slice for `FINISHED_TTL_S`. The spec of a RayJob is written once, so that `up` leaves it so.
"""

import time
from datetime import UTC, datetime

from infra.plan.identity import QUEUE_LABEL
from infra.platforms.daily import Say
from infra.platforms.errors import PlatformError
from infra.platforms.gke.found import Object
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.runs_seen import run_seen
from infra.platforms.gke.seeing import Seeing
from infra.platforms.state_seen import OVER, RunSeen
from workloads.spec.run import STOPPED_ANNOTATION

KUEUE_APIS = ("/apis/kueue.x-k8s.io/v1beta2", "/apis/kueue.x-k8s.io/v1beta1")
PAUSE_S = 1.0
TOLD_EVERY_S = 15.0


def stop_run(kubernetes: Kubernetes, seeing: Seeing, run: str, say: Say, timeout_s: float) -> RunSeen:
    """End a run and wait until its pods are gone; one that is over stays as it is.

    Raises:
        PlatformError: there is no such run, or it goes on after `timeout_s`.
        httpx.HTTPError: the API server cannot be asked.
    """
    path = seeing.job_path(run)
    job = _there(kubernetes.get(path), run)
    seen = run_seen(run, job)
    if seen.state in OVER and STOPPED_ANNOTATION not in (job["metadata"].get("annotations") or {}):
        return seen
    say(f"stopping run {run}")
    if _where(job) == "Waiting":
        # KubeRay does not look at `suspend` while it waits for a submission, which never came.
        kubernetes.delete(path)
        return seen.model_copy(update={"state": "stopped", "reason": ""})
    _suspend(kubernetes, path, job)
    began = told = time.monotonic()
    while _where(job) not in ("Suspended", "Complete", "Failed", "ValidationFailed"):
        now = time.monotonic()
        if now - began > timeout_s:
            raise PlatformError(
                f"run {run} does not end",
                wanted=f"KubeRay has taken its pods away within {timeout_s:.0f} s",
                found=_where(job) or "KubeRay has not looked at it",
                next_step="`tpu-ray status` shows when it has ended; it holds its slice until then",
            )
        if now - told > TOLD_EVERY_S:
            told = now
            say(f"run {run} is {_where(job)} ({now - began:.0f} s)")
        time.sleep(PAUSE_S)
        job = _there(kubernetes.get(path), run)
    return run_seen(run, job)


def _suspend(kubernetes: Kubernetes, path: str, job: Object) -> None:
    metadata = job["metadata"]
    when = datetime.now(UTC).isoformat(timespec="seconds")
    change: dict[str, object] = {"metadata": {"annotations": {STOPPED_ANNOTATION: when}}}
    if QUEUE_LABEL not in (metadata.get("labels") or {}):
        kubernetes.change(path, {**change, "spec": {"suspend": True}})
        return
    kubernetes.change(path, change)
    # Kueue would start again what it has admitted: it suspends by itself what its workload says is not active.
    for api in KUEUE_APIS:
        folder = f"{api}/namespaces/{metadata['namespace']}/workloads"
        mine = [
            workload["metadata"]["name"]
            for workload in kubernetes.every(folder)
            if any(owner["uid"] == metadata["uid"] for owner in workload["metadata"].get("ownerReferences") or [])
        ]
        for name in mine:
            kubernetes.change(f"{folder}/{name}", {"spec": {"active": False}})
        if mine:
            return


def _there(job: Object | None, run: str) -> Object:
    if job is None:
        raise PlatformError(f"there is no RayJob of run {run}", next_step="`up` makes those of the stack file")
    return job


def _where(job: Object) -> str:
    return str((job.get("status") or {}).get("jobDeploymentStatus", ""))
