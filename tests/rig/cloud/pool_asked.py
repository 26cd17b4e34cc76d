"""A node pool as it is asked for, in the words of GKE's rules."""

from dataclasses import dataclass

from tests.rig.cloud import machines
from tests.rig.cloud.machines import TpuMachine
from tests.rig.cloud.world import CLUSTER, World, cluster_id, is_zone, last, text, whole, zones_of
from tests.rig.gcp.values import Object, plain_list, plain_object

DEFAULT_MACHINE = "e2-medium"
UNSTATED = "UNSPECIFIED"


@dataclass(frozen=True)
class PoolAsked:
    """What the rules look at; counts are nodes per zone."""

    name: str
    project: str
    cluster_id: str
    cluster: Object
    zones: tuple[str, ...]
    inputs: Object
    node: Object
    machine_type: str
    machine: TpuMachine | None

    @property
    def placement(self) -> Object:
        return plain_object(self.inputs.get("placementPolicy"))

    @property
    def topology(self) -> str:
        return text(self.placement.get("tpuTopology"))

    @property
    def policy_name(self) -> str:
        return text(self.placement.get("policyName"))

    @property
    def compact(self) -> bool:
        return self.placement.get("type") == "COMPACT"

    @property
    def gang(self) -> int | None:
        """Hosts of a slice of several hosts; None where each node stands alone."""
        if self.machine is None or not self.topology or not machines.makes_slices(self.machine_type, self.topology):
            return None
        return machines.hosts(self.machine, self.topology)

    @property
    def autoscaling(self) -> Object | None:
        block = self.inputs.get("autoscaling")
        return block if isinstance(block, dict) else None

    @property
    def spot(self) -> bool:
        return self.node.get("spot") is True or self.node.get("preemptible") is True

    @property
    def flex_start(self) -> bool:
        return self.node.get("flexStart") is True

    @property
    def queued(self) -> bool:
        return plain_object(self.inputs.get("queuedProvisioning")).get("enabled") is True

    @property
    def consumes(self) -> str:
        """How it uses reservations: `NO_RESERVATION`, `SPECIFIC_RESERVATION`, `UNSPECIFIED`..."""
        affinity = plain_object(self.node.get("reservationAffinity"))
        return text(affinity.get("consumeReservationType")) or UNSTATED

    @property
    def reservations(self) -> list[str]:
        return [text(name) for name in plain_list(plain_object(self.node.get("reservationAffinity")).get("values"))]

    @property
    def first_nodes(self) -> int:
        """Nodes per zone that are made at once."""
        return whole(self.inputs.get("nodeCount")) or whole(self.inputs.get("initialNodeCount"))

    @property
    def least_nodes(self) -> int:
        """Nodes per zone below which the autoscaler does not go."""
        return whole((self.autoscaling or {}).get("minNodeCount"))

    @property
    def disk_type(self) -> str:
        return text(self.node.get("diskType")) or text(plain_object(self.node.get("bootDisk")).get("diskType"))

    @property
    def second_interfaces(self) -> list[Object]:
        configs = plain_object(self.inputs.get("networkConfig")).get("additionalNodeNetworkConfigs")
        return [plain_object(config) for config in plain_list(configs)]


def pool_asked(world: World, inputs: Object) -> PoolAsked:
    """The pool that the inputs describe; its cluster may be missing, and is then empty."""
    id = cluster_id(world, inputs)
    thing = world.get(CLUSTER, id)
    zones = [text(zone) for zone in plain_list(inputs.get("nodeLocations"))]
    if not zones and thing is not None:
        zones = [text(zone) for zone in plain_list(thing.own.get("zones"))]
    node = plain_object(inputs.get("nodeConfig"))
    machine_type = text(node.get("machineType")) or DEFAULT_MACHINE
    return PoolAsked(
        name=text(inputs.get("name")),
        project=id.split("/")[1],
        cluster_id=id,
        cluster={} if thing is None else thing.outputs,
        zones=tuple(zones or zones_of(id.split("/")[3])),
        inputs=inputs,
        node=node,
        machine_type=machine_type,
        machine=machines.TPU_MACHINES.get(machine_type),
    )


def default_pool(cluster: str, inputs: Object) -> Object:
    """Inputs of the pool that a new cluster brings along."""
    parts = cluster.split("/")
    given = [zone for zone in plain_list(inputs.get("nodeLocations")) if zone != parts[3]]
    zones = [parts[3], *given] if is_zone(parts[3]) else given or list(zones_of(parts[3]))
    return {
        "name": "default-pool",
        "cluster": cluster,
        "project": parts[1],
        "location": parts[3],
        "nodeLocations": zones,
        "initialNodeCount": whole(inputs.get("initialNodeCount")),
        "nodeConfig": plain_object(inputs.get("nodeConfig")),
    }


def policy_id(pool: PoolAsked) -> str:
    """Id of the resource policy that the pool names."""
    region = pool.zones[0].rpartition("-")[0]
    return f"projects/{pool.project}/regions/{region}/resourcePolicies/{last(pool.policy_name)}"
