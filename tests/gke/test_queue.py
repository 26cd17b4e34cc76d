"""Queued pools: Kueue comes from its own chart, asks GKE for whole slices, and goes with the last such pool."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.cloud.world import CLUSTER
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.deployments import running_deployments
from tests.rig.kube.kuberay import operated
from tests.rig.kube.parts import kueue_chart

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
DAY_S = 86400


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[GkeCheckout]:
    config = {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-east5",
            "zone": "us-east5-b",
            "image": "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
            "storage": "gs://tpu-ray-test-queue",
            "delete_storage": True,
            "namespace": "training",
            "kueue_chart": str(kueue_chart()),
            "cluster": {"deletion_protection": False},
        },
        "tpu-ray:pools": [
            {
                "name": "night",
                "generation": "v6e",
                "topology": "4x4",
                "capacity": "queued",
                "max_run_s": DAY_S,
                "slices": {"min": 0, "max": 2},
            }
        ],
        "tpu-ray:services": [],
        "tpu-ray:jobs": [
            {
                "name": "story",
                "pool": "night",
                "run": "r1",
                "steps": 200,
                "data": {"source": "bundled:python-reference", "global_batch": 32},
            }
        ],
    }
    with operated(tmp_path / "plane") as plane, running_deployments(plane, tmp_path / "deployments"):
        yield GkeCheckout(tmp_path, "dev", plane, config)


def specs(stack: GkeCheckout, kind: str) -> dict[str, Any]:
    """What each of Kueue's objects of a kind asks for, by name."""
    return {one["metadata"]["name"]: one.get("spec", {}) for one in stack.plane.every(f"{KUEUE}/{kind}")}


def test_kueue_comes_with_a_queued_pool_and_goes_with_it(stack: GkeCheckout) -> None:
    preview = stack.operate("preview")
    assert set(preview.changes) == {"create"}
    assert "Queue queue" in [resource for _, resource in steps(preview)]
    up = stack.operate("up")
    assert up.ok, up.failures

    (manager,) = stack.plane.every("/apis/apps/v1/namespaces/kueue-system/deployments")
    assert manager["status"]["availableReplicas"] == 1
    flavors = specs(stack, "resourceflavors")
    # GKE's own labels of such nodes: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
    assert flavors["night"]["nodeLabels"] == {
        "tpu-ray/pool": "night",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        "cloud.google.com/gke-accelerator-count": "4",
    }
    assert flavors["tpu-ray.cpu"] == {}
    (queue,) = specs(stack, "clusterqueues").values()
    (group,) = queue["resourceGroups"]
    chips = {
        flavor["name"]: resource["nominalQuota"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if resource["name"] == "google.com/tpu"
    }
    # Two slices of 16 chips.
    assert chips == {"tpu-ray.cpu": "0", "night": "32"}
    assert queue["admissionChecksStrategy"] == {"admissionChecks": [{"name": "tpu-ray-night", "onFlavors": ["night"]}]}
    # https://kueue.sigs.k8s.io/docs/admission-check-controllers/provisioning/ and the class of GKE's queued nodes:
    # https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
    assert specs(stack, "admissionchecks") == {
        "tpu-ray-night": {
            "controllerName": "kueue.x-k8s.io/provisioning-request",
            "parameters": {
                "apiGroup": "kueue.x-k8s.io",
                "kind": "ProvisioningRequestConfig",
                "name": "tpu-ray-night",
            },
        }
    }
    config = specs(stack, "provisioningrequestconfigs")["tpu-ray-night"]
    assert config["provisioningClassName"] == "queued-provisioning.gke.io"
    assert config["managedResources"] == ["google.com/tpu"]
    assert config["parameters"] == {"maxRunDurationSeconds": str(DAY_S)}
    (local,) = stack.plane.every(f"{KUEUE}/namespaces/training/localqueues")
    assert local["spec"]["clusterQueue"] == "tpu-ray"

    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []

    (pool,) = stack.config["tpu-ray:pools"]
    pool["capacity"] = "on-demand"
    del pool["max_run_s"]
    stack.write()
    without = stack.operate("up")
    assert without.ok, without.failures
    order = [resource for operation, resource in steps(without) if operation == "delete"]
    (deployment,) = [resource for resource in order if resource.startswith("Deployment ")]
    for kind in ("ClusterQueue", "LocalQueue", "AdmissionCheck", "ProvisioningRequestConfig", "ResourceFlavor"):
        mine = [resource for resource in order if resource.startswith(f"{kind} ")]
        assert mine
        # Kueue itself has to be there while its objects go: it takes its finalizers off them.
        assert max(map(order.index, mine)) < order.index(deployment)
    assert order.index(deployment) < order.index("Namespace queue-system")
    assert left_of_kueue(stack) == []
    assert set(stack.operate("preview").changes) == {"same"}

    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert not stack.things(CLUSTER)


def test_a_cluster_with_kueue_in_it_is_destroyed(stack: GkeCheckout) -> None:
    up = stack.operate("up")
    assert up.ok, up.failures
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert not stack.things(CLUSTER)
    # Nothing is left of it in the state either.
    assert stack.operate("destroy").steps == ()


def left_of_kueue(stack: GkeCheckout) -> list[str]:
    """Everything in the cluster that is called Kueue's."""
    lists = (
        "/api/v1/namespaces",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/apiregistration.k8s.io/v1/apiservices",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "/api/v1/pods",
    )
    names = [one["metadata"]["name"] for path in lists for one in stack.plane.every(path)]
    return [name for name in names if "kueue" in name]
