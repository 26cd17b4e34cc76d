"""Which slice the workers of a replica are on, and whether that is one, and theirs alone."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
NODE_POOL = "cloud.google.com/gke-nodepool"
REPLICA = ("ray.io/worker-group-replica-name", "replicaIndex")
"""Of KubeRay from 1.6 on, and of the webhook where KubeRay has none."""


class Mixed(AssertionError):
    """Workers of one replica on several slices, or of several on one; says which."""


def check_whole_slices(workers: Iterable[Json], nodes: Iterable[Json]) -> dict[tuple[str, str], set[str]]:
    """Node pools of each (Ray cluster, replica).

    Raises:
        Mixed: a replica is not on one slice, or not alone there.
    """
    pool_of = {node["metadata"]["name"]: node["metadata"]["labels"][NODE_POOL] for node in nodes}
    pools: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in workers:
        labels = pod["metadata"]["labels"]
        replica = next(labels[key] for key in REPLICA if key in labels)
        pools[labels["ray.io/cluster"], replica].add(pool_of[pod["spec"]["nodeName"]])
    wrong = [
        f"replica {replica} of Ray cluster {cluster} is on {len(found)} slices: {', '.join(sorted(found))}"
        for (cluster, replica), found in pools.items()
        if len(found) > 1
    ]
    for pool in sorted({pool for found in pools.values() for pool in found}):
        guests = [f"{cluster} {replica}" for (cluster, replica), found in pools.items() if pool in found]
        if len(guests) > 1:
            wrong.append(f"slice {pool} has workers of {len(guests)} replicas: {', '.join(guests)}")
    if wrong:
        raise Mixed("; ".join(wrong))
    return dict(pools)
