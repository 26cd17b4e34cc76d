"""How many slices of a pool are there, from a cluster's nodes. Pure."""

from collections import Counter
from collections.abc import Iterable

from infra.plan.node_pools import POOL_LABEL, slice_selector
from infra.platforms.gke.found import Object
from infra.stack import GkePlatform, PoolSpec

NODE_POOL = "cloud.google.com/gke-nodepool"


def node_selector(platform: GkePlatform, pool: PoolSpec) -> str:
    """Label selector of the pool's nodes. Where the pools are others', all of its shape count."""
    labels = {POOL_LABEL: pool.name} if platform.cluster.gets_pools else slice_selector(pool.slice)
    return ",".join(f"{key}={value}" for key, value in labels.items())


def slices_there(pool: PoolSpec, nodes: Iterable[Object]) -> int:
    """Slices whose hosts are all there and ready. The hosts of a slice are one node pool."""
    ready = Counter(node["metadata"]["labels"].get(NODE_POOL, "") for node in nodes if _is_ready(node))
    return sum(count // pool.slice.hosts for count in ready.values())


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
