"""Machines and a cluster in memory, and the pods that ask for them."""

import threading
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from tests.cloud.asked import CLUSTER_ID, cloud, pool, with_cluster
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import NODE_POOL
from tests.rig.gcp.values import Object
from tests.rig.gke_side.instances import node_name, pools
from tests.rig.gke_side.kubernetes import ended
from tests.rig.gke_side.side import GkeSide, Times

Json = dict[str, Any]
SLICE = f"{CLUSTER_ID}/nodePools/slice"
SHORT = Times(grace_s=20, scan_s=1, idle_s=60, backoff_s=30)
TPU_TOLERATION: Json = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}


class Cluster:
    """What the API server would hold; a kubelet registers its node as ready at once."""

    def __init__(self) -> None:
        self.held: dict[str, Json] = {}
        self.put: dict[str, Json] = {}
        self.events: list[tuple[str, str, str, str]] = []
        self.ending: list[str] = []

    def nodes(self) -> list[Json]:
        return list(self.held.values())

    def pods(self) -> list[Json]:
        return list(self.put.values())

    def announce_end(self, node: str) -> None:
        self.ending.append(node)

    def remove_node(self, node: str) -> None:
        self.held.pop(node, None)

    def end_pod(self, pod: Json) -> None:
        pod["status"] = ended(pod)

    def tell(self, pod: Json, type: str, reason: str, message: str) -> None:
        self.events.append((pod["metadata"]["name"], type, reason, message))

    def said(self, reason: str) -> list[str]:
        """Messages with a reason, each once."""
        return list(dict.fromkeys(message for _, _, one, message in self.events if one == reason))

    def pend(self, *pods: Json) -> None:
        self.put |= {pod["metadata"]["name"]: pod for pod in pods}

    def bind(self, pod: str, node: str) -> None:
        """The scheduler finds a node, and the pod runs."""
        self.put[pod]["spec"]["nodeName"] = node
        self.put[pod]["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class EmulatedMachines:
    """Machines that start at once; one that is stopped is gone when the test says so."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self.alive: dict[str, Object] = {}
        self.stopping: dict[str, float] = {}
        self.started: list[str] = []

    def start(self, node: Object) -> None:
        with self._lock:
            assert node_name(node) not in self.alive
            self.alive[node_name(node)] = node
            self.started.append(node_name(node))
            self._cluster.held[node_name(node)] = dict(node)

    def stop(self, name: str, grace_s: float) -> None:
        with self._lock:
            assert name not in self.stopping
            self.stopping[name] = grace_s

    def running(self) -> Set[str]:
        with self._lock:
            return set(self.alive)

    def shut_down(self) -> dict[str, float]:
        """Those that were told to end are gone now; the seconds that their pods had."""
        told, self.stopping = self.stopping, {}
        for name in told:
            del self.alive[name]
        return told

    def crash(self, name: str) -> None:
        """A machine ends by itself."""
        del self.alive[name]


class World:
    """A cloud with one cluster, its machines and its pods, and a clock that stands still."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self._folder = folder
        self.cloud: Cloud = with_cluster(cloud(folder, machines=True, **settings))
        self.now = 1000.0
        self.cluster = Cluster()
        self.machines = EmulatedMachines(self.cluster)
        self.side = GkeSide(self.cloud, self.cluster, self.machines, SHORT, lambda: self.now)

    def settings(self, **settings: object) -> None:
        """What Google has is otherwise from now on."""
        write_settings(self._folder, Settings.model_validate({"machines": True, **settings}))

    def make(self, **changes: object) -> list[str]:
        """A node pool and its machines; names of its nodes."""
        made, _ = self.cloud.create(NODE_POOL, pool(**changes))
        self.look()
        return self.names(made)

    def names(self, pool_id: str = SLICE) -> list[str]:
        """The nodes that a pool is to have."""
        return next(found.names for found in pools(self.cloud) if found.id == pool_id)

    def look(self, seconds: float = 0.0) -> None:
        """Time goes by, and Google looks."""
        self.now += seconds
        self.side.look()

    def settle(self) -> None:
        """Whatever is told to end is gone, and Google has seen it."""
        self.machines.shut_down()
        self.look()
        self.look()


def stock(hosts: int) -> list[Json]:
    """The zone has so many machines for slices."""
    return [{"zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": hosts}]


def pending(name: str, chips: int = 4, topology: str = "4x4", **spec: Any) -> Json:
    """A pod with chips that the scheduler found no node for."""
    resources = {"limits": {"google.com/tpu": str(chips)}, "requests": {"cpu": "500m", "memory": "16Gi"}}
    return {
        "metadata": {"name": name, "namespace": "ray", "uid": f"uid-{name}"},
        "spec": {
            "nodeSelector": {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                "cloud.google.com/gke-tpu-topology": topology,
            },
            "tolerations": [TPU_TOLERATION],
            "containers": [{"name": "ray-worker", "resources": resources}],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def workers(count: int = 4, group: str = "a") -> Iterator[Json]:
    return (pending(f"{group}-{number}") for number in range(count))
