"""The machines that Google's instance groups are to have, in the files of the cloud's double.

`own["sizes"]` of a node pool is its target size in each zone, `own["retired"]` the numbers of machines that never come
again, `own["notices"]` the machines that are told to end, with the seconds that their pods have.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from tests.rig.cloud import refusals_capacity
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.filled_pool import shown_pool
from tests.rig.cloud.held import Thing
from tests.rig.cloud.nodes import node_names, node_numbers, nodes
from tests.rig.cloud.pool_asked import PoolAsked, pool_asked
from tests.rig.cloud.refused import OperationFailed, Refused
from tests.rig.cloud.world import NODE_POOL, World, text, whole
from tests.rig.gcp.values import Object, plain_list, plain_object

NOTICE_S = 30.0
"""https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms: pods have 30 seconds after the notice, the
first 15 for those that are not critical to the system."""


@dataclass(frozen=True)
class Pool:
    """A node pool and the nodes it is to have; `notices` are seconds by node."""

    id: str
    thing: Thing
    asked: PoolAsked

    @property
    def nodes(self) -> list[Object]:
        return nodes(self.id, self.thing)

    @property
    def names(self) -> list[str]:
        return node_names(self.id, self.thing)

    @property
    def notices(self) -> dict[str, float]:
        found = plain_object(self.thing.own.get("notices"))
        return {name: float(grace) for name, grace in found.items() if isinstance(grace, int | float)}

    @property
    def gang(self) -> int | None:
        """Hosts of a slice of several hosts; None where each node stands alone."""
        return self.asked.gang

    def size(self, zone: str) -> int:
        return whole(plain_object(self.thing.own.get("sizes")).get(zone))

    @property
    def whole_size(self) -> int:
        return sum(self.size(zone) for zone in self.asked.zones)

    def group(self, zone: str) -> str:
        """URL of the zone's instance group, as the autoscaler names it."""
        urls = plain_list(shown_pool(self.id, self.thing).get("managedInstanceGroupUrls"))
        return next(text(url) for url in urls if f"/zones/{zone}/" in text(url))

    def template(self, zone: str) -> Object:
        """The node that the zone would get next."""
        taken = node_names(self.id, self._sized({zone: self.size(zone)}))
        return nodes(self.id, self._sized({zone: len(taken) + 1}))[-1]

    def _sized(self, sizes: dict[str, int]) -> Thing:
        return Thing(self.thing.outputs, {**self.thing.own, "sizes": dict(sizes)})


def node_name(node: Object) -> str:
    return text(plain_object(node.get("metadata")).get("name"))


def pools(cloud: Cloud) -> list[Pool]:
    """Every node pool, as it is now."""
    with cloud.held.change() as things:
        world = World(cloud.settings, things)
        found = world.every(NODE_POOL)
        return [Pool(id, thing, pool_asked(world, thing.outputs)) for id, thing in found.items()]


def preempt(cloud: Cloud, name: str, notice_s: float = NOTICE_S) -> None:
    """Compute Engine wants spot machines back: one, by its node's name, or all of a pool, by the pool's id.

    https://docs.cloud.google.com/compute/docs/instances/spot#preemption

    Raises:
        ValueError: it is not there, or not on spot machines.
    """
    pool = _pool(cloud, name)
    if not pool.asked.spot:
        raise ValueError(f"{name} is not on spot machines")
    _notify(cloud, pool, name, notice_s)


def delete_instance(cloud: Cloud, name: str) -> None:
    """Somebody deletes the instance of a node: it is gone without a notice."""
    _notify(cloud, _pool(cloud, name), name, 0.0)


def _pool(cloud: Cloud, name: str) -> Pool:
    for pool in pools(cloud):
        if name in (pool.id, *pool.names):
            return pool
    raise ValueError(f"{name} is not there")


def _notify(cloud: Cloud, pool: Pool, name: str, grace_s: float) -> None:
    names = pool.names if name == pool.id else [name]
    _change(cloud, pool.id, lambda own: {**own, "notices": {**pool.notices, **dict.fromkeys(names, grace_s)}})


def retire(cloud: Cloud, pool_id: str, names: Collection[str]) -> None:
    """These machines of a pool never come again: those in their place have other names."""

    with cloud.held.change() as things:
        thing = things.get(NODE_POOL, pool_id)
        if thing is None:
            return
        retired = plain_object(thing.own.get("retired"))
        for zone in map(text, plain_list(thing.outputs.get("nodeLocations"))):
            numbers = [n for name, n in node_numbers(pool_id, thing, zone).items() if name in names]
            retired = {**retired, zone: [*plain_list(retired.get(zone)), *numbers]}
        own: Object = {**thing.own, "retired": retired, "notices": _without(thing.own, names)}
        things.put(NODE_POOL, pool_id, Thing(thing.outputs, own))


def answered(cloud: Cloud, pool_id: str, names: Collection[str]) -> None:
    """These machines are gone as they were told; others may come under their names."""
    _change(cloud, pool_id, lambda own: {**own, "notices": _without(own, names)})


def _without(own: Object, names: Collection[str]) -> Object:
    return {name: grace for name, grace in plain_object(own.get("notices")).items() if name not in names}


def resize(cloud: Cloud, pool_id: str, zone: str, size: int) -> None:
    """Set the target size of a zone's instance group."""
    _change(cloud, pool_id, lambda own: {**own, "sizes": {**plain_object(own.get("sizes")), zone: size}})


def refused(cloud: Cloud, pool_id: str, zone: str, size: int) -> str:
    """Why Compute Engine does not bring a zone of a pool to a size, in the autoscaler's words; empty where it does."""
    with cloud.held.change() as things:
        world, thing = World(cloud.settings, things), things.get(NODE_POOL, pool_id)
        if thing is None:
            return ""
        asked = pool_asked(world, {**thing.outputs, "nodeLocations": [zone], "nodeCount": size})
        try:
            refusals_capacity.quota(world, asked)
        except Refused:
            return "GCE quota exceeded"
        try:
            refusals_capacity.stockout(world, asked)
        except OperationFailed:
            return "GCE out of resources"
    return ""


def _change(cloud: Cloud, pool_id: str, change: Callable[[Object], Object]) -> None:
    with cloud.held.change() as things:
        thing = things.get(NODE_POOL, pool_id)
        # A pool may be deleted at any moment, and its machines with it.
        if thing is not None:
            things.put(NODE_POOL, pool_id, Thing(thing.outputs, change(thing.own)))
