"""One RayService for each service and one RayJob for each job's run, or what begins its runs at their times. Pure."""

import yaml

from infra.plan.chips import upgrade_strategy
from infra.plan.identity import CLUSTER
from infra.plan.mark import digest, mark_application
from infra.plan.workloads import serve_application
from infra.platforms.gke import guarded
from infra.platforms.gke.cluster import Manifest, ray_cluster
from infra.platforms.gke.code import runtime_env, service_code
from infra.platforms.gke.job_manifest import ray_job
from infra.platforms.gke.launches import service_launch
from infra.platforms.gke.models import job_name, stage_job, staged_models
from infra.platforms.gke.pod_env import with_env
from infra.platforms.gke.scaled import with_scaling
from infra.platforms.gke.schedule import schedule_manifests
from infra.platforms.gke.vllm_pods import with_vllm
from infra.stack import GkePlatform, StackSpec
from workloads.spec import EngineSpec, ServiceSpec, VllmSpec


def manifests(platform: GkePlatform, stack: StackSpec) -> dict[str, Manifest]:
    """File name to manifest: services first, in the stack file's order, last what brings models of the hub. A paused
    service has none."""
    services = {f"rayservice-{s.name}.yaml": ray_service(platform, stack, s) for s in stack.running_services}
    jobs: dict[str, Manifest] = {}
    for job in stack.jobs:
        if job.schedule is None:
            jobs[f"rayjob-{job.name}.yaml"] = ray_job(platform, stack, job)
        else:
            made = schedule_manifests(platform, stack, job)
            jobs |= {f"{kind.lower()}-{job.name}.yaml": manifest for kind, manifest in made.items()}
    models = {
        f"job-{job_name(m, f)}.yaml": stage_job(platform, m, f)
        for f, m in staged_models(platform, stack, stack.running_services).items()
    }
    return {**services, **jobs, **models}


def ray_service(platform: GkePlatform, stack: StackSpec, service: ServiceSpec, model_version: str = "") -> Manifest:
    """The RayService of one service. `model_version` is the exported step of a `job:` model."""
    application = application_of(platform, stack, service, model_version)
    tells_itself = isinstance(service.engine, EngineSpec)
    applications = [application] if tells_itself else [application, mark_application(application)]
    mark = {CLUSTER: digest(_service_cluster(platform, stack, service, 1))}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {**_metadata(platform, service.name), "annotations": mark},
        "spec": {
            "serveConfigV2": yaml.safe_dump({"applications": applications}, sort_keys=False),
            "upgradeStrategy": {"type": upgrade_strategy(stack, service)},
            "rayClusterConfig": _service_cluster(platform, stack, service, service.replicas.max),
        },
    }


def application_of(
    platform: GkePlatform, stack: StackSpec, service: ServiceSpec, model_version: str = ""
) -> dict[str, object]:
    """What Serve is told to run: the engine's application, with the code where that is not in the image."""
    application = serve_application(service_launch(platform, stack, service, model_version))
    if code := runtime_env(platform, service_code(platform, service)):
        said = application.get("runtime_env", {})
        application["runtime_env"] = {**(said if isinstance(said, dict) else {}), **code}
    return application


def _service_cluster(platform: GkePlatform, stack: StackSpec, service: ServiceSpec, slices: int) -> Manifest:
    cluster = with_scaling(ray_cluster(platform, stack.pool(service.pool), slices), service.replicas)
    if isinstance(service.engine, VllmSpec):
        cluster = with_vllm(cluster, service)
    cluster = with_env(cluster, {}, service.secret_env)
    return guarded.of_service(platform, cluster, service.name)


def _metadata(platform: GkePlatform, name: str) -> Manifest:
    return {"name": name, "namespace": platform.namespace, "labels": {"app.kubernetes.io/managed-by": "tpu-ray"}}
