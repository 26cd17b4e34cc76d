"""What an edit of a stack file does to its pools and its cluster, and which edits replace TPU hosts. Pure.

The tables say what the components make of a key; a test holds them to the operations of the Pulumi engine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from pydantic import BaseModel, ConfigDict

from infra.plan.cautions import max_run_s
from infra.plan.node_pools import Fixed, NodePool, Scaled, node_pools
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


def _never(before: Value, after: Value) -> bool:
    return False


def _wider(before: Value, after: Value) -> bool:
    """Whether a range contains the old one. Google makes it wider in place; it makes none smaller."""
    return IPv4Network(str(before)).subnet_of(IPv4Network(str(after)))


@dataclass(frozen=True)
class PlatformKey:
    """A key of the platform that gives the stack another cluster, and so every pool other hosts.

    Where it says nothing on one side, because another key decides there, its value is `ABSENT`.
    """

    key: str
    value: Callable[[GkePlatform], Value]
    in_place: Callable[[Value, Value], bool] = _never
    """Whether the cluster stays when the first value becomes the second."""


ABSENT = ""


def _placed(value: Callable[[GkePlatform], Value]) -> Callable[[GkePlatform], Value]:
    """The value where it says which cluster is meant, which a kubeconfig alone says itself."""
    return lambda gke: ABSENT if not gke.cluster.gets_pools else value(gke)


def _made(value: Callable[[GkePlatform], Value]) -> Callable[[GkePlatform], Value]:
    """The value where the stack makes its cluster and network, not where it takes a cluster that is there."""
    return lambda gke: value(gke) if _is_made(gke) else ABSENT


PLATFORM_KEYS = (
    PlatformKey("project", _placed(lambda gke: gke.project)),
    PlatformKey("region", _placed(lambda gke: gke.region)),
    PlatformKey("zone", _placed(lambda gke: gke.zone if gke.cluster.location == "zone" else ABSENT)),
    PlatformKey("cluster.location", _placed(lambda gke: gke.cluster.location)),
    PlatformKey("cluster.existing", lambda gke: gke.cluster.existing),
    # Beside `existing` it is only a way to log in.
    PlatformKey("cluster.kubeconfig", lambda gke: None if gke.cluster.existing else gke.cluster.kubeconfig),
    PlatformKey("cluster.context", lambda gke: None if gke.cluster.existing else gke.cluster.context),
    PlatformKey("network.nodes", _made(lambda gke: gke.network.nodes), in_place=_wider),
    PlatformKey("network.pods", _made(lambda gke: gke.network.pods)),
    PlatformKey("network.services", _made(lambda gke: gke.network.services)),
    PlatformKey("network.control_plane", _made(lambda gke: gke.network.control_plane)),
)
"""The keys of `tpu-ray:platform` of kind `gke` that replace the cluster."""

Fate = Literal["added", "removed", "replaced", "shrunk", "changed", "same"]
"""`replaced`: its TPU hosts are deleted and made anew. `shrunk`: it has fewer slices at most, and what runs on those
that go ends. `changed`: in place, hosts that stay are kept."""

NodePoolFate = Literal["created", "deleted", "replaced", "replaced-if-empty", "updated", "same"]
"""What happens to one node pool at GKE. `replaced-if-empty`: a slice on demand becomes one that is kept. GKE resizes no
slice of several hosts, so where it has no host its node pool is made anew; where it has all, it is updated."""

ClusterFate = Literal["added", "removed", "replaced", "other", "same"]
"""Of the cluster that the stack makes, with all in it; `other`: the stack takes another one that is there already."""


class KeyChange(BaseModel):
    """One key with another value. `key` is the pool's key, or `platform.<key>`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    before: Value
    after: Value
    replaces: bool


class NodePoolChange(BaseModel):
    """What happens to one node pool at GKE, by its name there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    fate: NodePoolFate


class PoolChange(BaseModel):
    """What happens to one pool. `hosts`: whether the stack made TPU hosts for it, which it may lose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str
    fate: Fate
    hosts: bool
    keys: tuple[KeyChange, ...] = ()
    node_pools: tuple[NodePoolChange, ...] = ()


class ClusterChange(BaseModel):
    """What happens to the cluster, and the keys that say so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fate: ClusterFate
    keys: tuple[KeyChange, ...] = ()


def changes(before: StackSpec | None, after: StackSpec) -> tuple[PoolChange, ...]:
    """What becomes of each pool: those of `after` in its order, then those that go. None: there was no stack."""
    old = {pool.name: pool for pool in before.pools} if before else {}
    cluster = cluster_change(before, after).keys
    told = [
        _changed(old[pool.name], pool, before, after, cluster)
        if before and pool.name in old
        else PoolChange(pool=pool.name, fate="added", hosts=False, node_pools=_fates((), _node_pools(after, pool)))
        for pool in after.pools
    ]
    staying = {pool.name for pool in after.pools}
    gone = [_removed(before, pool) for pool in old.values() if pool.name not in staying] if before else []
    return (*told, *gone)


def _removed(before: StackSpec, pool: PoolSpec) -> PoolChange:
    gone = _fates(_node_pools(before, pool), ())
    return PoolChange(pool=pool.name, fate="removed", hosts=makes_hosts(before), node_pools=gone)


def _changed(
    old: PoolSpec, new: PoolSpec, before: StackSpec, after: StackSpec, cluster: tuple[KeyChange, ...]
) -> PoolChange:
    hosts = makes_hosts(before)
    keys = [*cluster]
    for entry in POOL_KEYS:
        was, now = entry.value(old, _gke(before)), entry.value(new, _gke(after))
        if was != now:
            keys.append(KeyChange(key=entry.key, before=was, after=now, replaces=entry.replaces and hosts))
    replaced = any(change.replaces for change in keys)
    fate: Fate = "replaced" if replaced else "changed" if keys else "same"
    if fate == "changed" and hosts and new.slices.max < old.slices.max:
        fate = "shrunk"
    made = _fates(_node_pools(before, old), _node_pools(after, new), replaced)
    return PoolChange(pool=new.name, fate=fate, hosts=hosts, keys=tuple(keys), node_pools=made)


def _node_pools(stack: StackSpec, pool: PoolSpec) -> tuple[NodePool, ...]:
    """The node pools that the stack makes for the pool."""
    gke = _gke(stack)
    return node_pools(pool, gke.zone) if gke is not None and makes_hosts(stack) else ()


def _fates(old: tuple[NodePool, ...], new: tuple[NodePool, ...], replaced: bool = False) -> tuple[NodePoolChange, ...]:
    """What happens to each of them: those of `new` in its order, then those that go."""
    was, staying = {pool.name: pool for pool in old}, {pool.name for pool in new}
    told: list[tuple[str, NodePoolFate]] = [(pool.name, _fate(was.get(pool.name), pool, replaced)) for pool in new]
    told += [(name, "deleted") for name in was if name not in staying]
    return tuple(NodePoolChange(name=name, fate=fate) for name, fate in told)


def _fate(old: NodePool | None, new: NodePool, replaced: bool) -> NodePoolFate:
    if old is None:
        return "created"
    if replaced:
        return "replaced"
    if old == new:
        return "same"
    kept_now = new.multi_host and isinstance(old.size, Scaled) and isinstance(new.size, Fixed)
    return "replaced-if-empty" if kept_now else "updated"


def cluster_change(before: StackSpec | None, after: StackSpec) -> ClusterChange:
    """What becomes of the stack's cluster. None: there was no stack."""
    has = _makes_cluster(after)
    if before is None:
        return ClusterChange(fate="added" if has else "same")
    keys, had = _cluster_keys(before, after), _makes_cluster(before)
    fate: ClusterFate = "same"
    if keys and (had or has):
        fate = "replaced" if had and has else "removed" if had else "added"
    elif keys and _gke(after) is not None:
        fate = "other"
    return ClusterChange(fate=fate, keys=keys)


def _cluster_keys(before: StackSpec, after: StackSpec) -> tuple[KeyChange, ...]:
    hosts, old, new = makes_hosts(before), _gke(before), _gke(after)
    if old is None or new is None:
        kinds = before.platform.kind, after.platform.kind
        if kinds[0] == kinds[1]:
            return ()
        return (KeyChange(key="platform.kind", before=kinds[0], after=kinds[1], replaces=hosts),)
    return tuple(
        KeyChange(key=f"platform.{entry.key}", before=was, after=now, replaces=hosts)
        for entry in PLATFORM_KEYS
        if (was := entry.value(old)) != (now := entry.value(new))
        and ABSENT not in (was, now)
        and not entry.in_place(was, now)
    )


def makes_hosts(stack: StackSpec) -> bool:
    """Whether the stack makes TPU hosts: not on one machine, and not in a cluster whose pools are there already."""
    gke = _gke(stack)
    return gke is not None and gke.cluster.gets_pools


def _makes_cluster(stack: StackSpec) -> bool:
    gke = _gke(stack)
    return gke is not None and _is_made(gke)


def _is_made(gke: GkePlatform) -> bool:
    """Whether the stack makes the cluster and its network."""
    return gke.cluster.is_made


def _gke(stack: StackSpec) -> GkePlatform | None:
    return stack.platform if isinstance(stack.platform, GkePlatform) else None
