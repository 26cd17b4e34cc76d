"""What Ray's node table says about the slices of one pool: which are whole, which are free, who holds the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray._private.state import available_resources_per_node
from ray.util import placement_group_table

from workloads.spec import Slice
from workloads.spec.pools import pool_resource

NAME, WORKER_ID = "ray.io/tpu-slice-name", "ray.io/tpu-worker-id"
TOPOLOGY, POD_TYPE = "ray.io/tpu-topology", "ray.io/tpu-pod-type"


@dataclass(frozen=True)
class SeenHost:
    """One living host."""

    node_id: str
    worker_id: int
    tpus: float
    tpus_free: float
    head_free: bool


@dataclass(frozen=True)
class SeenSlice:
    """The living hosts that carry one slice name, by worker id."""

    name: str
    hosts: tuple[SeenHost, ...]
    intact: bool
    """Every host is there, with all its chips."""
    held_by: tuple[str, ...]
    """Placement groups on its hosts: their names, or ids where they have none."""

    @property
    def tpus_free(self) -> bool:
        """Whether no chip of it is taken."""
        return all(host.tpus_free == host.tpus for host in self.hosts)

    @property
    def head_free(self) -> bool:
        """Whether nobody has the resource that only worker 0 has."""
        return self.hosts[0].head_free


def look(slice: Slice, pool: str) -> tuple[SeenSlice, ...]:
    """The slices of this shape and pool that have at least one living host, by name."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    available: dict[str, dict[str, float]] = available_resources_per_node()  # type: ignore[no-untyped-call]
    return sort_out(slice, pool, nodes, available, placement_group_table())


def sort_out(
    slice: Slice,
    pool: str,
    nodes: list[dict[str, Any]],
    available: Mapping[str, Mapping[str, float]],
    groups: Mapping[str, Mapping[str, Any]],
) -> tuple[SeenSlice, ...]:
    """`look` on values: `nodes` as `ray.nodes()` gives them, `available` by node id, `groups` as Ray's table."""
    by_name: dict[str, list[SeenHost]] = {}
    for node in nodes:
        labels, total = node.get("Labels", {}), node.get("Resources", {})
        if not node["Alive"] or pool_resource(pool) not in total or NAME not in labels:
            continue
        if labels.get(TOPOLOGY) != slice.topology or labels.get(POD_TYPE) != slice.ray_pod_type:
            continue
        # A resource that is used up is missing from this table, so a missing one is 0.
        free = available.get(node["NodeID"], {})
        host = SeenHost(
            node["NodeID"],
            int(labels.get(WORKER_ID, -1)),
            total.get("TPU", 0),
            free.get("TPU", 0),
            free.get(slice.ray_head_resource, 0) >= 1,
        )
        by_name.setdefault(labels[NAME], []).append(host)
    return tuple(_slice(slice, name, hosts, groups) for name, hosts in sorted(by_name.items()))


def describe(seen: SeenSlice, slice: Slice) -> str:
    """One phrase on the state of a slice."""
    if not seen.intact:
        return f"{seen.name} is broken: {len(seen.hosts)} of its {slice.hosts} hosts are there"
    if seen.tpus_free and seen.head_free:
        return f"{seen.name} has just become free"
    if not seen.held_by:
        return f"{seen.name} is busy: work without a placement group runs on it"
    return f"{seen.name} is busy: held by {', '.join(seen.held_by)}"


def _slice(slice: Slice, name: str, hosts: list[SeenHost], groups: Mapping[str, Mapping[str, Any]]) -> SeenSlice:
    hosts = sorted(hosts, key=lambda host: host.worker_id)
    intact = [host.worker_id for host in hosts] == list(range(slice.hosts)) and all(
        host.tpus == slice.chips_per_host for host in hosts
    )
    ids = {host.node_id for host in hosts}
    held_by = [
        group.get("name") or f"placement group {group_id[:12]}"
        for group_id, group in groups.items()
        if group["state"] == "CREATED" and ids & set(group["bundles_to_node_id"].values())
    ]
    return SeenSlice(name, tuple(hosts), intact, tuple(sorted(held_by)))
