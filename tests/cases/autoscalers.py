"""Ray's own two autoscalers of 2.60 over a Ray cluster of the renderer's, with a double of KubeRay below them."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from ray.autoscaler._private.autoscaler import StandardAutoscaler
from ray.autoscaler._private.kuberay import node_provider
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler._private.load_metrics import LoadMetrics
from ray.autoscaler._private.providers import _clear_provider_cache
from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import KubeRayProvider
from ray.autoscaler.v2.instance_manager.config import AutoscalingConfig
from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
from ray.core.generated.autoscaler_pb2 import GangResourceRequest, ResourceRequest  # type: ignore[attr-defined]
from ray.core.generated.common_pb2 import Bundle, PlacementStrategy  # type: ignore[attr-defined]
from ray.core.generated.gcs_pb2 import PlacementGroupTableData  # type: ignore[attr-defined]

Json = dict[str, Any]
Bundles = Sequence[Mapping[str, float]]
NAME, NAMESPACE = "chat-x7k2p", "ml"
RUNNING: Json = {"containerStatuses": [{"state": {"running": {}}}]}


class Kube(node_provider.IKubernetesHttpApiClient):
    """The API server as Ray's autoscalers ask it, and KubeRay, which makes and deletes whole slices.

    `labelled`: whether the pods of a slice carry `replicaIndex`, as GKE's webhook gives it where KubeRay has no index
    of its own (1.5).
    """

    def __init__(self, cluster: Json, labelled: bool = False) -> None:
        # The CRD's own default, which the API server fills in.
        groups = [{"replicas": 0, **group} for group in cluster["workerGroupSpecs"]]
        self.cluster = {
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {**cluster, "workerGroupSpecs": groups},
        }
        self.labelled, self.pods, self.made = labelled, dict[str, Json](), 0
        self.reconcile()

    @property
    def groups(self) -> list[Json]:
        found: list[Json] = self.cluster["spec"]["workerGroupSpecs"]
        return found

    @property
    def replicas(self) -> list[int]:
        return [group["replicas"] for group in self.groups]

    def hosts(self, group: str) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["metadata"]["labels"]["ray.io/group"] == group]

    def reconcile(self) -> None:
        """`reconcilePods` of raycluster_controller.go: the named pods go, with their slices; what lacks comes; what is
        too much stays, because with an autoscaler that is its to say."""
        for group in self.groups:
            name, hosts = group["groupName"], group["numOfHosts"]
            named = group.get("scaleStrategy", {}).get("workersToDelete", [])
            slices = {pod.rpartition("-")[0] for pod in named}
            self.pods = {pod: of for pod, of in self.pods.items() if pod.rpartition("-")[0] not in slices}
            for _ in range(group["replicas"] - len(self.hosts(name)) // hosts):
                self.made += 1
                for host in range(hosts):
                    labels = {"ray.io/node-type": "worker", "ray.io/group": name, "ray.io/cluster": NAME}
                    labels |= {"replicaIndex": f"{name}-0"} if self.labelled else {}
                    pod = f"{name}-{self.made}-{host}"
                    self.pods[pod] = {"metadata": {"name": pod, "labels": labels}, "status": {**RUNNING, "podIP": pod}}

    def get(self, path: str) -> Json:
        if path.startswith("rayclusters"):
            return deepcopy(self.cluster)
        labels = {"ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/cluster": NAME}
        head = {"metadata": {"name": "head", "labels": labels}, "status": {**RUNNING, "podIP": "head"}}
        return {"items": deepcopy([head, *self.pods.values()]), "metadata": {"resourceVersion": "1"}}

    def patch(
        self, path: str, payload: list[Json] | Json, content_type: str = "application/json-patch+json"
    ) -> dict[str, Any]:
        assert isinstance(payload, list)
        for one in payload:
            _, _, number, key = one["path"].strip("/").split("/")
            self.groups[int(number)][key] = one["value"]
        self.reconcile()
        return self.cluster

    def delete(self, path: str) -> Json:
        raise AssertionError(path)


class First:
    """The first version: `StandardAutoscaler`, round by round."""

    def __init__(self, kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
        _clear_provider_cache()  # type: ignore[no-untyped-call]
        monkeypatch.setattr(node_provider, "KubernetesHttpApiClient", lambda *_, **__: kube)
        self.kube, self.seen = kube, LoadMetrics()  # type: ignore[no-untyped-call]
        no_gcs: Any = _Gcs()
        self.autoscaler = StandardAutoscaler(
            lambda: _derive_autoscaling_config_from_ray_cr(kube.cluster), self.seen, no_gcs, update_interval_s=0
        )

    def look(self, waits: Bundles = (), idle: Mapping[str, float] | None = None) -> None:
        """One round, in which this placement group waits and these hosts have been idle for so many seconds."""
        group = PlacementGroupTableData(state=PlacementGroupTableData.PENDING, strategy=PlacementStrategy.PACK)
        group.bundles.extend(Bundle(unit_resources=dict(one)) for one in waits)
        for pod in ("head", *self.kube.pods):
            seen: Any = self.seen
            has, free = {"CPU": 1}, {"CPU": 0}
            since = (idle or {}).get(pod, 0.0)
            seen.update(pod, pod.encode(), has, free, since, pending_placement_groups=[group] if waits else [])
        time.sleep(0.001)
        self.autoscaler.update()  # type: ignore[no-untyped-call]


class _Gcs:
    """Lets every node be drained."""

    def drain_nodes(self, node_ids: list[bytes], **_: object) -> list[bytes]:
        return node_ids


class Second:
    """The second version: its scheduler, and its provider that writes what the scheduler wants."""

    def __init__(self, kube: Kube) -> None:
        no_gcs: Any = None
        self.kube, self.tries = kube, 0
        self.provider = KubeRayProvider(NAME, {"namespace": NAMESPACE}, no_gcs, k8s_api_client=kube)

    def wants(self, *waiting: Bundles) -> dict[str, int]:
        """Hosts that it wants of each group where these placement groups wait and no slice that is there is free."""
        made = _derive_autoscaling_config_from_ray_cr(self.kube.cluster)
        config = AutoscalingConfig(made, skip_content_hash=True)
        types = {name: of for name, of in config.get_node_type_configs().items() if not self.kube.hosts(name)}
        reply = ResourceDemandScheduler().schedule(
            SchedulingRequest(
                disable_launch_config_check=True,
                node_type_configs=types,
                max_num_nodes=config.get_max_num_nodes(),
                gang_resource_requests=[_gang(bundles) for bundles in waiting],
            )
        )
        return {launch.instance_type: launch.count for launch in reply.to_launch}

    def launch(self, hosts: dict[str, int]) -> None:
        self.tries += 1
        self.provider.launch(shape=hosts, request_id=f"launch-{self.tries}")
        assert not self.provider.poll_errors()

    def terminate(self, pods: list[str]) -> None:
        self.tries += 1
        self.provider.terminate(ids=pods, request_id=f"terminate-{self.tries}")
        assert not self.provider.poll_errors()


def _gang(bundles: Bundles) -> GangResourceRequest:
    made = GangResourceRequest()
    selector = made.bundle_selectors.add()
    for bundle in bundles:
        request = ResourceRequest(resources_bundle=dict(bundle))
        selector.resource_requests.append(request)
        made.requests.append(request)
    return made
