"""Two owners of one number of replicas, and why there is only one here."""

import json
from typing import Any

import pytest
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler._private.kuberay.node_provider import IKubernetesHttpApiClient
from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import KubeRayProvider

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.stacks import Config, config, mistakes, pool, service


def made(stack: Config) -> list[dict[str, Any]]:
    parsed = parse_stack(stack)
    assert isinstance(parsed.platform, GkePlatform)
    return [dict(manifest) for manifest in manifests(parsed.platform, parsed).values()]


def ray_cluster(topology: str) -> dict[str, Any]:
    """A RayCluster whose second slice is there when somebody asks for it."""
    (manifest,) = made(config(pool(topology=topology, slices=2), services=(service(replicas=2),)))
    spec: dict[str, Any] = json.loads(json.dumps(manifest["spec"]["rayClusterConfig"]))
    spec["workerGroupSpecs"][1] |= {"replicas": 0, "minReplicas": 0}
    return {"metadata": {"name": "chat-x7k2p", "namespace": "ml"}, "spec": spec}


def test_nothing_but_the_stack_file_says_how_many_slices_there_are() -> None:
    """kuberay#1120, kuberay#4149: what Ray's autoscaler would write, the next `up` would take back."""
    stack = config(pool(slices=3), services=(service(replicas=2),), jobs=({"name": "train", "pool": "a"},))
    for manifest in made(stack):
        cluster = manifest["spec"].get("rayClusterConfig") or manifest["spec"]["rayClusterSpec"]
        assert not {"enableInTreeAutoscaling", "autoscalerOptions"} & set(cluster)
        for group in cluster["workerGroupSpecs"]:
            # One owner, and no room for another: KubeRay holds to the least and the most.
            assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == 1


@pytest.mark.parametrize("replicas", [{"min": 0, "max": 2}, [0, 2]], ids=str)
def test_a_range_of_replicas_is_refused_and_not_taken_for_its_least(replicas: object) -> None:
    """kuberay#2331: a `max` that is accepted and reaches no Ray cluster."""
    found = mistakes(config(pool(slices=2), services=(service(replicas=replicas),)))
    assert list(found) == ["services[0].replicas"]
    assert found["services[0].replicas"].allowed == ("a whole number",)


@pytest.mark.parametrize(("topology", "resource"), [("2x2", "TPU-v6e-4-head"), ("4x4", "TPU-v6e-16-head")])
def test_ray_would_know_what_a_slice_that_is_not_there_brings(topology: str, resource: str) -> None:
    """kuberay#1120. What waits for a slice asks for its first host and its pool; Ray reads both from the manifest."""
    types = _derive_autoscaling_config_from_ray_cr(ray_cluster(topology))["available_node_types"]
    found = types["a-s1"]
    assert (found["resources"][resource], found["resources"]["pool:a"]) == (1, 1000)
    assert found["min_workers"] == 0


class Api(IKubernetesHttpApiClient):
    """The API server as Ray's autoscaler asks it: one RayCluster, and no pod of it yet."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        self.cluster, self.patches = cluster, list[Any]()

    def get(self, path: str) -> dict[str, Any]:
        return self.cluster if path.startswith("rayclusters") else {"items": [], "metadata": {"resourceVersion": "1"}}

    def patch(
        self,
        path: str,
        payload: list[dict[str, Any]] | dict[str, Any],
        content_type: str = "application/json-patch+json",
    ) -> dict[str, Any]:
        assert (path, content_type) == ("rayclusters/chat-x7k2p", "application/json-patch+json")
        assert isinstance(payload, list)
        self.patches += payload
        return self.cluster

    def delete(self, path: str) -> dict[str, Any]:
        raise AssertionError(path)


@pytest.mark.parametrize(("topology", "wanted"), [("2x2", [1]), ("4x4", [])])
def test_ray_makes_no_slice_of_several_hosts_for_one_host_that_is_asked_for(topology: str, wanted: list[int]) -> None:
    """kuberay#1120. Its autoscaler (v2 of Ray 2.60) counts hosts and divides by those of a slice, rounding down: one
    host of four is no slice. As long as this holds, a range of replicas would be a promise for slices of one host only.
    """
    api = Api(ray_cluster(topology))
    no_gcs: Any = None
    provider = KubeRayProvider("chat-x7k2p", {"namespace": "ml"}, no_gcs, k8s_api_client=api)
    provider.launch(shape={"a-s1": 1}, request_id="1")
    assert [patch["value"] for patch in api.patches if patch["path"].endswith("/1/replicas")] == wanted
    # Nor does it say so.
    assert not provider.poll_errors()
