"""From a pool of slices to GKE node pools: how many, how large, and what GKE wants to be told about each. Pure.

One slice of several hosts is one node pool, all of it or nothing; slices of one host are the nodes of one node pool.
The rules and their sources stand beside the fields that follow them.
"""

from dataclasses import dataclass

from infra.stack import GkePlatform, PoolSpec
from infra.stack.rules_modes import LENT
from infra.stack.rules_names import node_pool_names
from workloads.spec import Slice

POOL_LABEL = "tpu-ray/pool"
"""Node label with the name of the pool."""

MAX_RUN_S = 604800
"""Flex-start and queued machines are kept for a week at most: https://cloud.google.com/kubernetes-engine/docs/concepts/dws"""

GENERATION_DISKS = {"v4": "pd-balanced", "v5e": "pd-balanced", "v5p": "pd-balanced"}
NEWER_DISK = "hyperdisk-balanced"
"""v6e and v7x boot from nothing else: GKE's cluster autoscaler, pkg/cloudprovider/gke/machinetypes."""


@dataclass(frozen=True)
class Fixed:
    """A node pool of so many nodes."""

    nodes: int


@dataclass(frozen=True)
class Scaled:
    """A node pool between so many nodes, by demand, counted per zone.

    GKE checks a slice against the zone's limit; a total limit alone means a limit of 0
    (https://github.com/vllm-project/ci-infra/pull/545).
    """

    least: int
    most: int


@dataclass(frozen=True)
class NodePool:
    """One GKE node pool, as https://docs.cloud.google.com/kubernetes-engine/docs/how-to/tpus wants it made."""

    name: str
    pool: str
    zone: str
    machine_type: str
    size: Fixed | Scaled
    topology: str | None
    """Of the placement policy. None for a single host: GKE refuses a topology there."""
    compact: bool
    """Whether the placement is COMPACT. v7x has a workload policy instead, and refuses it."""
    workload_policy: bool
    spot: bool
    flex_start: bool
    queued: bool
    reservation: str | None
    max_run_s: int | None
    auto_repair: bool
    """False where the machines are only lent for a time: GKE refuses to repair them."""
    disk_type: str
    disk_gib: int
    node_image: str
    second_nic: bool

    @property
    def multi_host(self) -> bool:
        return self.topology is not None

    @property
    def max_nodes(self) -> int:
        return self.size.nodes if isinstance(self.size, Fixed) else self.size.most

    @property
    def labels(self) -> dict[str, str]:
        """Node labels beyond GKE's own."""
        return {POOL_LABEL: self.pool}

    @property
    def create_timeout_s(self) -> int:
        """How long its machines may take to come: more for a large slice, whose hosts all have to come at once."""
        return min(4 * 3600, 3600 + 60 * self.max_nodes)


def node_pools(pool: PoolSpec, zone: str) -> tuple[NodePool, ...]:
    """The node pools of a pool, in order. `zone` is the platform's, for a pool that names none."""
    shape = pool.slice
    sizes: list[Fixed | Scaled]
    if shape.multi_host:
        kept = [Fixed(shape.hosts)] * pool.slices.min
        sizes = [*kept, *[Scaled(0, shape.hosts)] * (pool.slices.max - pool.slices.min)]
    else:
        fixed = pool.slices.min == pool.slices.max
        sizes = [Fixed(pool.slices.max) if fixed else Scaled(pool.slices.min, pool.slices.max)]
    names = node_pool_names(pool.name, shape.multi_host, pool.slices.max)
    lent = pool.capacity in LENT
    workload_policy = shape.multi_host and shape.generation == "v7x"
    return tuple(
        NodePool(
            name=name,
            pool=pool.name,
            zone=pool.zone or zone,
            machine_type=shape.machine_type,
            size=size,
            topology=shape.topology if shape.multi_host else None,
            compact=shape.multi_host and not workload_policy,
            workload_policy=workload_policy,
            spot=pool.capacity == "spot",
            flex_start=pool.capacity == "flex-start",
            queued=pool.capacity == "queued",
            reservation=pool.reservation if pool.capacity == "reservation" else None,
            max_run_s=(pool.max_run_s or MAX_RUN_S) if lent else None,
            auto_repair=not lent,
            disk_type=GENERATION_DISKS.get(shape.generation, NEWER_DISK),
            disk_gib=pool.boot_disk_gib,
            node_image=pool.node_image,
            second_nic=pool.second_nic,
        )
        for name, size in zip(names, sizes, strict=True)
    )


def slice_selector(shape: Slice) -> dict[str, str]:
    """Node labels of the slice's hosts.

    Accelerator and topology do not tell a `2x4` of two 4-chip hosts from one of a single 8-chip host: the scheduler was
    seen to put both pods on one host. The number of chips on the node does.
    """
    return {
        "cloud.google.com/gke-tpu-accelerator": shape.gke_accelerator,
        "cloud.google.com/gke-tpu-topology": shape.topology,
        "cloud.google.com/gke-accelerator-count": str(shape.chips_per_host),
    }


def cpu_machine(platform: GkePlatform) -> str:
    """Machine type of the nodes without chips: the user's, else one that exists in the zone."""
    return platform.cluster.cpu_nodes.machine_type or _CPU_MACHINES.get(platform.region, "e2-standard-8")


# The only region of TPUs without e2 machines; what it has: https://github.com/keras-team/kinetic/issues/305
_CPU_MACHINES = {"us-central2": "n2d-standard-8"}
