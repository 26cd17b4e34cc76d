"""One RayService for each service and one RayJob for each job's run. Pure."""

import hashlib
import json

import yaml

from infra.plan.chips import upgrade_strategy
from infra.plan.identity import CLUSTER, QUEUE
from infra.plan.launches import job_launch, service_launch
from infra.plan.mark import mark_application
from infra.plan.workloads import job_entrypoint, serve_application
from infra.platforms.gke import guarded
from infra.platforms.gke.cluster import Manifest, ray_cluster
from infra.platforms.gke.vllm_pods import with_vllm
from infra.stack import GkePlatform, StackSpec
from workloads.spec import EngineSpec, JobSpec, ServiceSpec, VllmSpec

FINISHED_TTL_S = 300
"""How long a finished run's Ray cluster, and so its slice, stays for a look at its logs."""


def manifests(platform: GkePlatform, stack: StackSpec) -> dict[str, Manifest]:
    """File name to manifest, services first, in the stack file's order."""
    services = {f"rayservice-{s.name}.yaml": ray_service(platform, stack, s) for s in stack.services}
    jobs = {f"rayjob-{j.name}.yaml": ray_job(platform, stack, j) for j in stack.jobs}
    return {**services, **jobs}


def ray_service(platform: GkePlatform, stack: StackSpec, service: ServiceSpec) -> Manifest:
    """The RayService of one service."""
    application = serve_application(service_launch(stack, service, platform.storage))
    tells_itself = isinstance(service.engine, EngineSpec)
    applications = [application] if tells_itself else [application, mark_application(application)]
    one_slice = json.dumps(_service_cluster(platform, stack, service, 1), sort_keys=True)
    mark = {CLUSTER: hashlib.sha256(one_slice.encode()).hexdigest()[:12]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {**_metadata(platform, service.name), "annotations": mark},
        "spec": {
            "serveConfigV2": yaml.safe_dump({"applications": applications}, sort_keys=False),
            "upgradeStrategy": {"type": upgrade_strategy(stack, service)},
            "rayClusterConfig": _service_cluster(platform, stack, service, service.replicas),
        },
    }


def _service_cluster(platform: GkePlatform, stack: StackSpec, service: ServiceSpec, slices: int) -> Manifest:
    cluster = ray_cluster(platform, stack.pool(service.pool), slices)
    if isinstance(service.engine, VllmSpec):
        cluster = with_vllm(cluster, service)
    return guarded.of_service(platform, cluster, service.name)


def ray_job(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> Manifest:
    """The RayJob of a job's run; its name holds the run, because KubeRay starts nothing when the spec changes."""
    launch = job_launch(stack, job, platform.storage)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": _metadata(platform, launch.run_name, queue=stack.pool(job.pool).capacity == "queued"),
        "spec": {
            "entrypoint": job_entrypoint(launch),
            "submissionMode": "K8sJobMode",
            # The run restarts from its checkpoint by itself; a retry here would be a new cluster on top of that.
            "backoffLimit": 0,
            "activeDeadlineSeconds": job.timeout_s,
            # Without these two a finished run keeps its slice, and its bill, for ever.
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": FINISHED_TTL_S,
            "submitterPodTemplate": guarded.submitter(platform, job.name),
            "rayClusterSpec": guarded.of_job(platform, ray_cluster(platform, stack.pool(job.pool), 1), job.name),
        },
    }


def _metadata(platform: GkePlatform, name: str, queue: bool = False) -> Manifest:
    labels = {"app.kubernetes.io/managed-by": "tpu-ray"}
    if queue:
        labels["kueue.x-k8s.io/queue-name"] = QUEUE
    return {"name": name, "namespace": platform.namespace, "labels": labels}
