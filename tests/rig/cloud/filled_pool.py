"""What GKE fills in of a node pool.

Which properties: terraform-provider-google-beta, resource_container_node_pool.go (flattenNodePool) and node_config.go.
"""

from tests.rig.cloud import machines
from tests.rig.cloud.held import Thing
from tests.rig.cloud.nodes import TPU_TAINT
from tests.rig.cloud.pool_asked import PoolAsked, pool_asked
from tests.rig.cloud.world import COMPUTE_URL, NODE_POOL, World, mark, text, under, whole
from tests.rig.gcp.values import Object, Value, plain_list, plain_object

QUEUED_TAINT: Object = {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NO_SCHEDULE"}
DEFAULT_SCOPES = (
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
    "https://www.googleapis.com/auth/service.management.readonly",
    "https://www.googleapis.com/auth/servicecontrol",
    "https://www.googleapis.com/auth/trace.append",
)
SMT_OFF: Object = {"threadsPerCore": 1}
"""GKE turns hyper-threads of TPU hosts off and reports that: vllm-project/ci-infra, terraform, lifecycle."""


def pool_id(world: World, inputs: Object) -> str:
    """`projects/<project>/locations/<location>/clusters/<cluster>/nodePools/<name>`."""
    return f"{pool_asked(world, inputs).cluster_id}/nodePools/{text(inputs.get('name'))}"


def fill_pool(world: World, inputs: Object) -> Thing:
    """A new pool as Google holds it; how many nodes each zone has is `own["sizes"]`."""
    pool = pool_asked(world, inputs)
    parts = pool.cluster_id.split("/")
    private = plain_object(pool.cluster.get("privateClusterConfig")).get("enablePrivateNodes") is True
    filled: Object = {
        "project": parts[1],
        "location": parts[3],
        "nodeLocations": list(pool.zones),
        "initialNodeCount": whole(inputs.get("nodeCount")),
        "maxPodsPerNode": whole(pool.cluster.get("defaultMaxPodsPerNode")) or 110,
        "management": {"autoRepair": True, "autoUpgrade": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
        "networkConfig": {
            "enablePrivateNodes": private,
            "podIpv4CidrBlock": text(pool.cluster.get("clusterIpv4Cidr")),
            "podRange": text(plain_object(pool.cluster.get("ipAllocationPolicy")).get("clusterSecondaryRangeName")),
            "subnetwork": text(pool.cluster.get("subnetwork")),
        },
        "nodeConfig": fill_node(pool),
        "version": text(pool.cluster.get("masterVersion")),
        "operation": "",
        "nodeDrainConfigs": [],
    }
    if pool.autoscaling is not None:
        filled["autoscaling"] = {"locationPolicy": "BALANCED"}
    outputs = plain_object(under(inputs, filled))
    if pool.policy_name:
        # As vllm-project/ci-infra, pull request 547, saw it on a live cluster.
        outputs["placementPolicy"] = {**pool.placement, "type": ""}
    for name in ("nodeCount", "instanceGroupUrls", "managedInstanceGroupUrls"):
        outputs.pop(name, None)
    total = whole((pool.autoscaling or {}).get("totalMinNodeCount"))
    sizes: Object = {zone: max(pool.first_nodes, pool.least_nodes) for zone in pool.zones}
    if total > sum(map(whole, sizes.values())):
        sizes[pool.zones[0]] = total
    return Thing(outputs, {"sizes": sizes})


def fill_node(pool: PoolAsked) -> Object:
    """The machines' block: what was given, and GKE's share of it."""
    node = pool.node
    disk = pool.disk_type or machines.boot_disks(pool.machine_type)[0]
    gigabytes = whole(node.get("diskSizeGb")) or whole(plain_object(node.get("bootDisk")).get("sizeGb")) or 100
    filled: Object = {
        "machineType": pool.machine_type,
        "diskType": disk,
        "diskSizeGb": gigabytes,
        "bootDisk": {"diskType": disk, "sizeGb": gigabytes},
        "imageType": "COS_CONTAINERD",
        "labels": {},
        "loggingVariant": "DEFAULT",
        "metadata": {"disable-legacy-endpoints": "true"},
        "oauthScopes": list(DEFAULT_SCOPES),
        "preemptible": False,
        "spot": False,
        "serviceAccount": "default",
        "localSsdCount": 0,
        "minCpuPlatform": "",
        "guestAccelerators": [],
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": False},
        "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": "TRUE"},
        "resourceLabels": _resource_labels(pool),
    }
    if plain_object(pool.cluster.get("workloadIdentityConfig")).get("workloadPool"):
        filled["workloadMetadataConfig"] = {"mode": "GKE_METADATA"}
    if pool.machine is not None:
        filled["advancedMachineFeatures"] = dict(SMT_OFF)
    outputs = plain_object(under(node, filled))
    outputs["effectiveTaints"] = effective_taints(pool)
    return outputs


def effective_taints(pool: PoolAsked) -> list[Value]:
    """The program's taints and GKE's own."""
    taints = list(plain_list(pool.node.get("taints")))
    if pool.machine is not None:
        taints.append(dict(TPU_TAINT))
    return [*taints, dict(QUEUED_TAINT)] if pool.queued else taints


def _resource_labels(pool: PoolAsked) -> Object:
    reserved = pool.consumes == "SPECIFIC_RESERVATION"
    model = "spot" if pool.spot else "flex-start" if pool.flex_start else "reservation" if reserved else "on-demand"
    labels: Object = {"goog-gke-node-pool-provisioning-model": model}
    if pool.machine is not None:
        labels["goog-gke-accelerator-type"] = pool.machine.accelerator
        labels["goog-gke-tpu-node-pool-type"] = "multi-host" if pool.gang is not None else "single-host"
    return labels


def shown_pool(id: str, thing: Thing) -> Object:
    """The pool as Google shows it now: size and instance groups are what they are at this moment."""
    parts, sizes = id.split("/"), plain_object(thing.own.get("sizes"))
    zones = [text(zone) for zone in plain_list(thing.outputs.get("nodeLocations"))]
    count = sum(whole(sizes.get(zone)) for zone in zones) // max(1, len(zones))
    groups = [
        f"{COMPUTE_URL}projects/{parts[1]}/zones/{zone}/instanceGroupManagers/"
        f"gke-{parts[5][:20]}-{parts[7][:20]}-{mark(f'{id}/{zone}', 8)}-grp"
        for zone in zones
    ]
    return {
        **thing.outputs,
        "nodeCount": count,
        "instanceGroupUrls": list(groups),
        "managedInstanceGroupUrls": [group.replace("instanceGroupManagers", "instanceGroups") for group in groups],
    }


def change_pool(world: World, id: str, thing: Thing, changed: Object) -> Thing:
    """The pool after a change that GKE accepts."""
    merged = {**thing.outputs, **changed}
    pool = pool_asked(world, {name: value for name, value in merged.items() if value is not None})
    outputs: Object = {name: value for name, value in merged.items() if value is not None}
    # Nothing but the type decides of these: the old machine's would stay otherwise.
    outputs["nodeConfig"] = fill_node(pool)
    sizes = {zone: whole(plain_object(thing.own.get("sizes")).get(zone)) for zone in pool.zones}
    if changed.get("nodeCount") is not None:
        sizes = dict.fromkeys(pool.zones, whole(changed["nodeCount"]))
    elif changed.get("autoscaling") is not None:
        sizes = {zone: max(size, pool.least_nodes) for zone, size in sizes.items()}
    outputs.pop("nodeCount", None)
    return Thing(outputs, {**thing.own, "sizes": dict(sizes)})


def pools_of(world: World, cluster: str) -> dict[str, Thing]:
    """The node pools of a cluster, by id."""
    return {id: thing for id, thing in world.every(NODE_POOL).items() if id.startswith(f"{cluster}/nodePools/")}
