"""Models of the hub in a gke stack: one Job for each brings it into the bucket, before the services that want it."""

import hashlib
from collections.abc import Sequence

import pulumi

from infra.components.model_stage import ModelStage
from infra.plan.identity import ACCOUNT
from infra.plan.node_pools import POOL_LABEL
from infra.plan.workloads import STAGE_MODULE
from infra.platforms.gke.bucket_volume import mounted
from infra.platforms.gke.cluster import HUB_TOKEN, Manifest
from infra.platforms.gke.launches import service_launch
from infra.stack import GkePlatform, StackSpec
from infra.stack.forms import slug
from infra.stack.rules_names import CPU_POOL
from workloads.spec import ServiceSpec
from workloads.spec.hub import hub_model

TIMEOUT_S = 6 * 3600
"""Half a terabyte at 25 MB/s."""
TRIES = 4
SIZE = {"cpu": "2", "memory": "8Gi"}


def staged_models(platform: GkePlatform, stack: StackSpec, services: Sequence[ServiceSpec]) -> dict[str, str]:
    """Folders in the pods, each with the model of the hub that one of the services wants there. Pure.

    Two ways to write one revision are one model: two Jobs would write into one folder.
    """
    found: dict[str, str] = {}
    for service in services:
        if hub_model(service.model):
            found.setdefault(service_launch(platform, stack, service).model, service.model)
    return found


def stage_job(platform: GkePlatform, model: str, folder: str) -> Manifest:
    """The Job that brings one model into a folder of the pods. Pure."""
    on_cpus = {"nodeSelector": {POOL_LABEL: CPU_POOL}} if platform.cluster.is_made else {}
    container = {
        "name": "stage",
        "image": platform.image,
        "command": ["python", "-m", STAGE_MODULE, model, folder, str(TIMEOUT_S)],
        "env": [HUB_TOKEN],
        "resources": {"requests": dict(SIZE), "limits": dict(SIZE)},
    }
    pod = {**on_cpus, "serviceAccountName": ACCOUNT, "restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(model, folder),
            "namespace": platform.namespace,
            "labels": {"app.kubernetes.io/managed-by": "tpu-ray"},
        },
        "spec": {
            "backoffLimit": TRIES - 1,
            "activeDeadlineSeconds": TIMEOUT_S,
            "template": mounted(platform, {"metadata": {}, "spec": pod}),
        },
    }


def job_name(model: str, folder: str) -> str:
    """`stage-<model>-<8 hexadecimal digits>`: another model or revision is another Job."""
    named = hub_model(model)
    assert named is not None
    mark = hashlib.sha256(f"{model} {folder}".encode()).hexdigest()[:8]
    return f"stage-{(slug(named.name) or 'model')[:40].strip('-')}-{mark}"


def deploy_models(platform: GkePlatform, stack: StackSpec, opts: pulumi.ResourceOptions) -> dict[str, pulumi.Resource]:
    """Declare the Jobs, by the model's folder in the pods."""
    # Also of a paused service: it comes back by itself.
    # A model that no service wants any more leaves the stack, though not the bucket: a protected Job would refuse to.
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=False))
    return {
        folder: ModelStage(
            job_name(model, folder),
            {"manifest": stage_job(platform, model, folder), "timeout_s": TIMEOUT_S},
            opts,
        )
        for folder, model in staged_models(platform, stack, stack.services).items()
    }
