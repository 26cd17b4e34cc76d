"""Rules that hold on GKE only. On the local platform the same pools come up, whatever these say."""

from collections.abc import Iterator, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform, PoolSpec
from infra.stack.problems import Problem
from infra.stack.rules_cluster import cluster_problems, makes_cluster, makes_node_pools, version_problems
from infra.stack.rules_modes import queued_service_problems
from infra.stack.rules_names import node_pool_name_problems
from infra.stack.rules_network import range_problems
from infra.stack.rules_ray import ray_problems
from infra.stack.translate import Entry
from workloads.spec import ServiceSpec


def gke_problems(
    platform: Entry[LocalPlatform | GkePlatform],
    pools: Sequence[Entry[PoolSpec]],
    services: Sequence[Entry[ServiceSpec]],
) -> Iterator[Problem]:
    """What is wrong between the keys of a `gke` platform, and between it and the pools. Nothing for another one."""
    if not isinstance(platform.spec, GkePlatform):
        return
    yield from _storage(platform, platform.spec)
    yield from cluster_problems(platform)
    if makes_cluster(platform):
        yield from range_problems(platform, pools)
        yield from version_problems(platform, pools)
    elif makes_node_pools(platform):
        yield from range_problems(platform, pools, ("second_nics",))
    if makes_node_pools(platform):
        yield from node_pool_name_problems(pools, makes_cluster(platform))
    for pool in pools:
        yield from _zone(pool, platform, platform.spec)
    yield from queued_service_problems(services, pools)
    yield from ray_problems(platform, pools, services)


def _storage(entry: Entry[LocalPlatform | GkePlatform], spec: GkePlatform) -> Iterator[Problem]:
    if entry.sound("make_storage", "delete_storage") and spec.delete_storage and not spec.make_storage:
        yield Problem(
            key=f"{entry.key}.delete_storage",
            value=True,
            reason="make_storage: false says that the bucket was there before the stack, so `destroy` leaves it",
            allowed=("false",),
            nearest=False,
        )


def _zone(pool: Entry[PoolSpec], platform: Entry[LocalPlatform | GkePlatform], spec: GkePlatform) -> Iterator[Problem]:
    """Silent where the platform's own zone is not in its region: then nobody knows which of them is wrong."""
    if pool.spec is None or pool.spec.zone is None or not pool.sound("zone"):
        return
    if not platform.sound("region", "zone") or not spec.zone.startswith(f"{spec.region}-"):
        return
    if pool.spec.zone.rpartition("-")[0] != spec.region:
        yield Problem(
            key=f"{pool.key}.zone",
            value=pool.spec.zone,
            reason=f"this zone is not in platform.region: {spec.region}",
            allowed=(f"{spec.region}-<letter>",),
            nearest=spec.zone,
        )
