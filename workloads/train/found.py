"""What the cluster has of a pool, in words, for an error that says what was wanted and what is there."""

from collections import defaultdict
from typing import Any

import ray
import ray._private.state

from workloads.slices_seen import NAME, TOPOLOGY, look
from workloads.spec.launch import JobLaunch
from workloads.spec.pools import POOL_PREFIX, pool_resource


def wanted_text(launch: JobLaunch) -> str:
    """The slice that a job asks for."""
    s = launch.slice
    hosts = "1 host" if s.hosts == 1 else f"{s.hosts} hosts"
    return f"a free {s.generation} {s.topology} slice of pool {launch.job.pool!r} ({hosts} of {s.chips_per_host} chips)"


def found_text(launch: JobLaunch) -> str:
    """The slices of the job's pool, how many of their hosts are alive, and how many chips are free."""
    resource = pool_resource(launch.job.pool)
    nodes = [node for node in _nodes() if node["Resources"].get(resource)]
    if not nodes:
        pools = sorted(
            {
                name.removeprefix(POOL_PREFIX)
                for node in _nodes()
                for name in node["Resources"]
                if name.startswith(POOL_PREFIX)
            }
        )
        return f"no host of pool {launch.job.pool!r} in the cluster; pools with hosts: {', '.join(pools) or 'none'}"
    free = _free()
    slices: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        slices[node["Labels"].get(NAME, "without name")].append(node)
    parts = []
    for name, hosts in sorted(slices.items()):
        chips = sum(int(host["Resources"].get("TPU", 0)) for host in hosts)
        left = sum(int(free.get(host["NodeID"], {}).get("TPU", 0)) for host in hosts)
        topology = hosts[0]["Labels"].get(TOPOLOGY, "unknown topology")
        parts.append(f"slice {name} ({topology}): {len(hosts)} hosts alive, {left} of {chips} chips free")
    return "; ".join(parts)


def free_slice(launch: JobLaunch) -> str | None:
    """The name of a slice of the pool whose hosts are all alive with all chips free, or None."""
    return next((seen.name for seen in look(launch.slice, launch.job.pool) if seen.intact and seen.tpus_free), None)


def _nodes() -> list[dict[str, Any]]:
    """The cluster's living nodes."""
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _free() -> dict[str, dict[str, float]]:
    """What is free of each resource, by node id. A resource that is used up is absent, not 0."""
    return dict(ray._private.state.available_resources_per_node())  # type: ignore[no-untyped-call]
