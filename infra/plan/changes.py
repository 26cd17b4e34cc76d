"""What an edit of a stack file does to its pools, and which edits replace TPU hosts. Pure.

The table says what the components make of a key; the operations were observed on the Pulumi engine with Google's
provider.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from infra.plan.cautions import max_run_s
from infra.plan.pools import zone_of
from infra.stack import GkePlatform, PoolSpec, StackSpec
from infra.stack.rules_modes import LENT

Value = str | int | float | bool | None


@dataclass(frozen=True)
class PoolKey:
    """A key of a pool. `value` is what it comes to, so that a default that is written out is no change."""

    key: str
    replaces: bool
    """Whether another value gives the pool other hosts."""
    value: Callable[[PoolSpec, GkePlatform | None], Value]


POOL_KEYS = (
    PoolKey("generation", True, lambda pool, _: pool.slice.generation),
    PoolKey("topology", True, lambda pool, _: pool.slice.topology),
    PoolKey("machine_type", True, lambda pool, _: pool.slice.machine_type),
    PoolKey("capacity", True, lambda pool, _: pool.capacity),
    PoolKey("reservation", True, lambda pool, _: pool.reservation if pool.capacity == "reservation" else None),
    PoolKey("max_run_s", True, lambda pool, _: max_run_s(pool) if pool.capacity in LENT else None),
    PoolKey("zone", True, lambda pool, gke: None if gke is None else zone_of(gke, pool)),
    PoolKey("second_nic", True, lambda pool, _: pool.second_nic),
    # GKE updates these in place, one host after the other.
    PoolKey("node_image", False, lambda pool, _: pool.node_image),
    PoolKey("boot_disk_gib", False, lambda pool, _: pool.boot_disk_gib),
    # More slices are new hosts, fewer end some; those that stay are kept.
    PoolKey("slices.min", False, lambda pool, _: pool.slices.min),
    PoolKey("slices.max", False, lambda pool, _: pool.slices.max),
    PoolKey("usd_per_chip_hour", False, lambda pool, _: pool.usd_per_chip_hour),
)
"""The keys of `tpu-ray:pools[]`. Another `name` is another pool: one goes, one comes."""


@dataclass(frozen=True)
class PlatformKey:
    """A key of the platform that gives the stack another cluster, and so every pool other hosts.

    Where it says nothing on one side, because another key decides there, its value is `ABSENT`.
    """

    key: str
    value: Callable[[GkePlatform], Value]


ABSENT = ""


def _made(value: Callable[[GkePlatform], Value]) -> Callable[[GkePlatform], Value]:
    """The value where the stack makes its cluster and network, not where it takes a cluster that is there."""
    return lambda gke: ABSENT if gke.cluster.existing or gke.cluster.kubeconfig else value(gke)


PLATFORM_KEYS = (
    PlatformKey("project", lambda gke: gke.project),
    PlatformKey("region", lambda gke: gke.region),
    PlatformKey("zone", lambda gke: gke.zone if gke.cluster.location == "zone" else ABSENT),
    PlatformKey("cluster.location", lambda gke: gke.cluster.location),
    PlatformKey("cluster.existing", lambda gke: gke.cluster.existing),
    # Beside `existing` it is only a way to log in.
    PlatformKey("cluster.kubeconfig", lambda gke: None if gke.cluster.existing else gke.cluster.kubeconfig),
    PlatformKey("network.nodes", _made(lambda gke: gke.network.nodes)),
    PlatformKey("network.pods", _made(lambda gke: gke.network.pods)),
    PlatformKey("network.services", _made(lambda gke: gke.network.services)),
    PlatformKey("network.control_plane", _made(lambda gke: gke.network.control_plane)),
)
"""The keys of `tpu-ray:platform` of kind `gke` that replace the cluster.

A range of nodes that contains the old one is widened in place; it is told as a replacement all the same.
"""

Fate = Literal["added", "removed", "replaced", "changed", "same"]
"""`replaced`: its TPU hosts are deleted and made anew. `changed`: in place, hosts that stay are kept."""


class KeyChange(BaseModel):
    """One key with another value. `key` is the pool's key, or `platform.<key>`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    before: Value
    after: Value
    replaces: bool


class PoolChange(BaseModel):
    """What happens to one pool. `hosts`: whether the stack made TPU hosts for it, which it may lose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str
    fate: Fate
    hosts: bool
    keys: tuple[KeyChange, ...] = ()


def changes(before: StackSpec | None, after: StackSpec) -> tuple[PoolChange, ...]:
    """What becomes of each pool: those of `after` in its order, then those that go. None: there was no stack."""
    old = {pool.name: pool for pool in before.pools} if before else {}
    cluster = _cluster_changes(before, after) if before else ()
    told = [
        _changed(old[pool.name], pool, before, after, cluster)
        if before and pool.name in old
        else PoolChange(pool=pool.name, fate="added", hosts=False)
        for pool in after.pools
    ]
    staying = {pool.name for pool in after.pools}
    hosts = before is not None and makes_hosts(before)
    gone = [PoolChange(pool=name, fate="removed", hosts=hosts) for name in old if name not in staying]
    return (*told, *gone)


def _changed(
    old: PoolSpec, new: PoolSpec, before: StackSpec, after: StackSpec, cluster: tuple[KeyChange, ...]
) -> PoolChange:
    hosts = makes_hosts(before)
    keys = [*cluster]
    for entry in POOL_KEYS:
        was, now = entry.value(old, _gke(before)), entry.value(new, _gke(after))
        if was != now:
            keys.append(KeyChange(key=entry.key, before=was, after=now, replaces=entry.replaces and hosts))
    fate: Fate = "replaced" if any(change.replaces for change in keys) else "changed" if keys else "same"
    return PoolChange(pool=new.name, fate=fate, hosts=hosts, keys=tuple(keys))


def _cluster_changes(before: StackSpec, after: StackSpec) -> tuple[KeyChange, ...]:
    hosts, old, new = makes_hosts(before), _gke(before), _gke(after)
    if old is None or new is None:
        kinds = before.platform.kind, after.platform.kind
        if kinds[0] == kinds[1]:
            return ()
        return (KeyChange(key="platform.kind", before=kinds[0], after=kinds[1], replaces=hosts),)
    return tuple(
        KeyChange(key=f"platform.{entry.key}", before=was, after=now, replaces=hosts)
        for entry in PLATFORM_KEYS
        if (was := entry.value(old)) != (now := entry.value(new)) and ABSENT not in (was, now)
    )


def makes_hosts(stack: StackSpec) -> bool:
    """Whether the stack makes TPU hosts: not on one machine, and not in a cluster whose pools are there already."""
    gke = _gke(stack)
    return gke is not None and not (gke.cluster.kubeconfig and not gke.cluster.existing)


def _gke(stack: StackSpec) -> GkePlatform | None:
    return stack.platform if isinstance(stack.platform, GkePlatform) else None
