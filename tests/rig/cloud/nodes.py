"""The Kubernetes nodes of a node pool, as GKE registers them.

Labels, taint and resources: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus and the TPU device
plugin (ai-on-gke/tpu-device-plugin).
"""

from itertools import count, islice

from tests.rig.cloud import machines
from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import last, mark, region_of, text, whole
from tests.rig.gcp.values import Object, Value, plain_list, plain_object

TPU = "google.com/tpu"
TPU_TAINT: Object = {"key": TPU, "value": "present", "effect": "NO_SCHEDULE"}
EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
RESERVED_CPU, RESERVED_GB = 1, 2
"""Kept for the system, roughly; https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes"""


def node_names(pool_id: str, pool: Thing) -> list[str]:
    """Names of the nodes that the pool has now, zone by zone."""
    return [name for zone in _zones(pool) for name in _in_zone(pool_id, pool, zone)]


def nodes(pool_id: str, pool: Thing) -> list[Object]:
    """The nodes that the pool has now, with their status."""
    return [_node(pool_id, pool, zone, name) for zone in _zones(pool) for name in _in_zone(pool_id, pool, zone)]


def _zones(pool: Thing) -> list[str]:
    return [text(zone) for zone in plain_list(pool.outputs.get("nodeLocations"))]


def node_numbers(pool_id: str, pool: Thing, zone: str) -> dict[str, int]:
    """Number of each node of a zone by its name; the numbers in `own["retired"]` are never used again."""
    size = whole(plain_object(pool.own.get("sizes")).get(zone))
    retired = {whole(number) for number in plain_list(plain_object(pool.own.get("retired")).get(zone))}
    machine = machines.TPU_MACHINES.get(text(plain_object(pool.outputs.get("nodeConfig")).get("machineType")))
    cluster, name = pool_id.split("/")[5], last(pool_id)
    group = mark(f"{pool_id}/{zone}", 8)
    start = f"gke-tpu-{group}" if machine else f"gke-{cluster[:20]}-{name[:20]}-{group}"
    numbers = islice((number for number in count() if number not in retired), size)
    return {f"{start}-{mark(f'{pool_id}/{zone}/{number}', 4)}": number for number in numbers}


def _in_zone(pool_id: str, pool: Thing, zone: str) -> list[str]:
    return list(node_numbers(pool_id, pool, zone))


def _node(pool_id: str, pool: Thing, zone: str, name: str) -> Object:
    config = plain_object(pool.outputs.get("nodeConfig"))
    machine_type = text(config.get("machineType"))
    cpus, memory = machines.size(machine_type)
    capacity: Object = {"cpu": str(cpus), "memory": f"{memory}Gi", "pods": str(whole(pool.outputs["maxPodsPerNode"]))}
    allocatable: Object = {**capacity, "cpu": str(cpus - RESERVED_CPU), "memory": f"{memory - RESERVED_GB}Gi"}
    tpu = machines.TPU_MACHINES.get(machine_type)
    if tpu is not None:
        capacity[TPU] = allocatable[TPU] = str(tpu.chips)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(pool_id, pool, config, zone, name)},
        "spec": {
            "providerID": f"gce://{pool_id.split('/')[1]}/{zone}/{name}",
            "taints": [_taint(plain_object(taint)) for taint in plain_list(config.get("effectiveTaints"))],
        },
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [_ready()],
            "nodeInfo": {"kubeletVersion": f"v{text(pool.outputs.get('version'))}"},
        },
    }


def _labels(pool_id: str, pool: Thing, config: Object, zone: str, name: str) -> Object:
    machine_type = text(config.get("machineType"))
    labels: Object = {
        **plain_object(config.get("labels")),
        "cloud.google.com/gke-nodepool": last(pool_id),
        "cloud.google.com/machine-family": machine_type.partition("-")[0],
        "cloud.google.com/gke-boot-disk": text(config.get("diskType")),
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": machine_type,
        "topology.kubernetes.io/region": region_of(zone),
        "topology.kubernetes.io/zone": zone,
    }
    tpu = machines.TPU_MACHINES.get(machine_type)
    if tpu is not None:
        labels["cloud.google.com/gke-tpu-accelerator"] = tpu.accelerator
        asked = text(plain_object(pool.outputs.get("placementPolicy")).get("tpuTopology"))
        labels["cloud.google.com/gke-tpu-topology"] = asked or tpu.topology
        labels["cloud.google.com/gke-accelerator-count"] = str(tpu.chips)
    if config.get("spot") is True:
        labels["cloud.google.com/gke-spot"] = "true"
    if config.get("flexStart") is True:
        labels["cloud.google.com/gke-flex-start"] = "true"
    if plain_object(config.get("workloadMetadataConfig")).get("mode") == "GKE_METADATA":
        labels["iam.gke.io/gke-metadata-server-enabled"] = "true"
    return labels


def _taint(taint: Object) -> Object:
    return {"key": taint.get("key"), "value": taint.get("value"), "effect": EFFECTS[text(taint.get("effect"))]}


def _ready() -> Value:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": "2026-12-02T08:00:00Z",
        "lastTransitionTime": "2026-12-02T08:00:00Z",
    }
