"""A run on GKE that is not of the stack file: a RayJob that waits until the working directory is there.

In KubeRay's InteractiveMode the operator makes the Ray cluster and waits (`Waiting`) for a job id; the files are given
to that cluster's dashboard, and the job is submitted there (rayjob_controller.go of 1.5 and 1.6).
"""

import time

from infra.components.network_policy import policy_spec
from infra.plan.identity import JOB_LABEL, QUEUE, QUEUE_LABEL
from infra.platforms.daily import Say, Submission
from infra.platforms.errors import PlatformError
from infra.platforms.gke import guarded
from infra.platforms.gke.cluster import Manifest, ray_cluster
from infra.platforms.gke.found import RAY_API, Object
from infra.platforms.gke.job_manifest import FINISHED_TTL_S
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.ray_of import ray_of
from infra.platforms.gke.runs_seen import POOL_ANNOTATION, SUBMITTED_LABEL, run_seen
from infra.platforms.gke.seeing import Seeing
from infra.platforms.ray_rest import RayRest
from infra.platforms.ray_runs import entrypoint, start
from infra.platforms.state_seen import RunSeen
from infra.stack import GkePlatform, StackSpec

PAUSE_S = 1.0
TOLD_EVERY_S = 15.0
DASHBOARD_S = 120.0
"""How long a head that runs may take until its dashboard answers."""


def submitted_job(platform: GkePlatform, stack: StackSpec, submission: Submission, wait_s: float) -> Manifest:
    """The RayJob of a submission."""
    launch = submission.launch
    pool = stack.pool(launch.pool)
    labels = {"app.kubernetes.io/managed-by": "tpu-ray", SUBMITTED_LABEL: "true"}
    if pool.capacity == "queued":
        labels[QUEUE_LABEL] = QUEUE
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": launch.name,
            "namespace": platform.namespace,
            "labels": labels,
            "annotations": {POOL_ANNOTATION: launch.pool},
        },
        "spec": {
            "entrypoint": entrypoint(submission),
            "submissionMode": "InteractiveMode",
            "backoffLimit": 0,
            "activeDeadlineSeconds": launch.timeout_s,
            # Where KubeRay knows it (1.6): without, a slice whose submitter was killed would wait for him for ever.
            "preRunningDeadlineSeconds": int(wait_s) + 600,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": FINISHED_TTL_S,
            "rayClusterSpec": guarded.of_job(platform, ray_cluster(platform, pool, 1), launch.name),
        },
    }


def submitted_policy(platform: GkePlatform, job: Object) -> Manifest:
    """Who reaches the pods of a submitted run: as those of a declared job. It goes with the RayJob."""
    name = job["metadata"]["name"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": name, "uid": job["metadata"]["uid"]}
    spec = policy_spec(
        {
            "namespace": platform.namespace,
            "object_name": name,
            "pods": {JOB_LABEL: name},
            "serves": False,
            "control_plane": platform.network.control_plane if platform.cluster.is_made else None,
            "metrics_from": platform.ray.metrics_from,
        }
    )
    metadata = {"name": f"tpu-ray-job-{name}", "namespace": platform.namespace, "ownerReferences": [owner]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def submit_run(
    kubernetes: Kubernetes, seeing: Seeing, stack: StackSpec, submission: Submission, say: Say, timeout_s: float
) -> RunSeen:
    """Make the RayJob, wait for its slice, give it the files and start it. Whatever fails, nothing stays.

    Raises:
        PlatformError: the slice does not come in time, or Ray refuses.
        httpx.HTTPError: the API server cannot be asked.
    """
    platform, name = stack.platform, submission.launch.name
    assert isinstance(platform, GkePlatform)
    path = seeing.job_path(name)
    job = kubernetes.make(
        f"{RAY_API}/namespaces/{platform.namespace}/rayjobs", submitted_job(platform, stack, submission, timeout_s)
    )
    begun = False
    try:
        if platform.ray.network_policy:
            policies = f"/apis/networking.k8s.io/v1/namespaces/{platform.namespace}/networkpolicies"
            kubernetes.make(policies, submitted_policy(platform, job))
        job = _until_waiting(kubernetes, seeing, path, name, say, timeout_s)
        ray = ray_of(kubernetes, platform.namespace, str(job["status"]["rayClusterName"]))
        say("the slice is there; uploading the working directory")
        _until_answering(ray)
        start(ray, submission)
        job = kubernetes.change(path, {"spec": {"jobId": name}})
        begun = True
    finally:
        if not begun:
            say(f"taking {name} back, and with it the slice")
            kubernetes.delete(path)
    return run_seen(name, job)


def _until_waiting(kubernetes: Kubernetes, seeing: Seeing, path: str, name: str, say: Say, timeout_s: float) -> Object:
    began = told = time.monotonic()
    while True:
        job = kubernetes.get(path)
        if job is None:
            raise PlatformError(f"{name} is gone", found="somebody deleted its RayJob")
        status = job.get("status") or {}
        if status.get("jobDeploymentStatus") == "Waiting":
            return job
        seen, now = run_seen(name, job), time.monotonic()
        if seen.state == "failed":
            raise PlatformError(f"{name} cannot run", found=seen.reason)
        late = now - began > timeout_s
        if late or now - told > TOLD_EVERY_S:
            told = now
            waits = seeing.waits_for(job) if status.get("rayClusterName") else ""
            reason = seen.reason or waits or f"its Ray cluster is {_cluster_state(status)}"
            if late:
                raise PlatformError(
                    f"no slice for {name} within {timeout_s:.0f} s (`--wait`)",
                    found=reason,
                    next_step="free a slice of the pool, raise its `slices`, or wait longer",
                )
            say(f"waiting for a slice ({now - began:.0f} s): {reason}")
        time.sleep(PAUSE_S)


def _until_answering(ray: RayRest) -> None:
    until = time.monotonic() + DASHBOARD_S
    while True:
        try:
            ray.get("/api/version")
            return
        except PlatformError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE_S)


def _cluster_state(status: Object) -> str:
    return str((status.get("rayClusterStatus") or {}).get("state") or "being made")
