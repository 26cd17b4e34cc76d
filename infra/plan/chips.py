"""How many slices of a pool are in use: kept, by services, and while services are upgraded. Pure."""

from typing import Literal

from infra.stack import PoolSpec, StackSpec
from workloads.spec import ServiceSpec

Strategy = Literal["NewCluster", "None"]
"""KubeRay's `upgradeStrategy.type`."""


def kept(stack: StackSpec, pool: PoolSpec) -> int:
    """Slices that are there even when nothing runs. On one machine all are: nothing is added on demand there."""
    return pool.slices.max if stack.platform.kind == "local" else pool.slices.min


def of_services(stack: StackSpec, pool: PoolSpec) -> int:
    """Slices that the pool's services take, each with the most replicas that it may have."""
    return sum(s.replicas.max for s in stack.services if s.pool == pool.name and not s.paused)


def always_used(stack: StackSpec, pool: PoolSpec) -> int:
    """Slices that the pool's services take even while there is little to do."""
    return sum(s.replicas.min for s in stack.services if s.pool == pool.name and not s.paused)


def in_use(stack: StackSpec, pool: PoolSpec) -> int:
    """Slices that services and one run of each job ask for together. It may be more than the pool has: jobs wait."""
    return of_services(stack, pool) + sum(1 for job in stack.jobs if job.pool == pool.name)


def to_roll_out(stack: StackSpec, service: ServiceSpec) -> int:
    """Slices that the service's pool needs so that a second cluster of the service fits beside all that runs."""
    return in_use(stack, stack.pool(service.pool)) + service.replicas.max


def upgrade_strategy(stack: StackSpec, service: ServiceSpec) -> Strategy:
    """`NewCluster` where the pool can hold the new cluster beside the old one, else `None`.

    KubeRay builds the whole new cluster before it switches over. Where there are no slices for it, its pods would wait
    for ever; with `None` nothing is started, and a change of the cluster has to replace the RayService
    (https://github.com/ray-project/kuberay/issues/4239).
    """
    return "NewCluster" if to_roll_out(stack, service) <= stack.pool(service.pool).slices.max else "None"


def kept_beside(stack: StackSpec, service: ServiceSpec) -> int:
    """The most slices that the old cluster of a service may have while the new one comes up beside it.

    One that has more, because the service had more replicas, leaves none for the new one.
    """
    pool = stack.pool(service.pool)
    return pool.slices.max - (in_use(stack, pool) - service.replicas.max) - service.replicas.max


def one_after_another(stack: StackSpec, pool: PoolSpec) -> bool:
    """Whether the pool's services may not roll out at once.

    Each new cluster takes slices as it finds them. With enough of them for all but one slice of each and one more, at
    least one cluster is complete, and its old one makes room for the next; with fewer, all may wait for each other.
    """
    rolling = _beside(stack, pool)
    return len(rolling) > 1 and sum(n - 1 for n in rolling) >= pool.slices.max - in_use(stack, pool)


def _beside(stack: StackSpec, pool: PoolSpec) -> list[int]:
    """Replicas, at most, of each of the pool's services that rolls out beside itself."""
    return [
        service.replicas.max
        for service in stack.running_services
        if service.pool == pool.name and upgrade_strategy(stack, service) == "NewCluster"
    ]


def at_upgrade(stack: StackSpec, pool: PoolSpec) -> int:
    """Slices at the peak: jobs running, and every service that rolls out beside itself doing so at once; where
    they may not (`one_after_another`), the largest.

    Never more than the pool's most, never fewer than are kept.
    """
    if stack.platform.kind == "local":
        return kept(stack, pool)
    rolling = _beside(stack, pool)
    beside = max(rolling) if one_after_another(stack, pool) else sum(rolling)
    return max(kept(stack, pool), min(pool.slices.max, in_use(stack, pool) + beside))
