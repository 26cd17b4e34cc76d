"""Google Cloud, for the stand-in `gcp` provider."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.rig.cloud import filled_cluster, filled_others, filled_pool, refusals_network, refusals_others, refusals_pool
from tests.rig.cloud.buckets import drop_content, keep_content
from tests.rig.cloud.control_plane import ControlPlane, read_control_plane
from tests.rig.cloud.families import FAMILIES
from tests.rig.cloud.held import Held, Thing, Things
from tests.rig.cloud.invokes import answer
from tests.rig.cloud.kubernetes_side import ApiServer, KubernetesSide
from tests.rig.cloud.nodes import node_names, nodes
from tests.rig.cloud.pool_asked import default_pool, pool_asked
from tests.rig.cloud.refusals_cluster import ray_operator, refuse_cluster_change
from tests.rig.cloud.refused import OperationFailed, Refused, RefusedPartially, not_found
from tests.rig.cloud.seed import seed
from tests.rig.cloud.settings import Settings, read_settings
from tests.rig.cloud.world import (
    BUCKET,
    BUCKET_OBJECT,
    CLUSTER,
    CRYPTO_KEY,
    KEY_RING,
    NETWORK,
    NODE_POOL,
    RESOURCE_POLICY,
    ROUTER,
    ROUTER_NAT,
    SERVICE,
    SUBNETWORK,
    World,
)
from tests.rig.gcp.values import Object

DEFINITIONS, NODES = "definitions", "nodes"
DEFINITIONS_MINUTES = 2.0
"""How long after the cluster the add-on's resource definitions come."""
BARE = (CLUSTER, BUCKET)
"""Types whose errors the provider passes on without words of its own."""
PAUSE_S, TRIES = 1.0, 60
SLACK_S = 0.01
"""A clock that sleeps and one that tells the time do not agree to the last digit."""


class Cloud:
    """What the Google APIs hold and answer; the state lies in files under `folder`.

    Args:
        folder: of this test; other processes may use it at the same time.
        kubernetes: how to reach into a cluster, given the API server that is handed out.
    """

    def __init__(self, folder: Path, kubernetes: Callable[[ControlPlane], KubernetesSide] = ApiServer) -> None:
        self._folder = folder
        self._kubernetes = kubernetes
        self.held = Held(folder)
        with self.held.change() as things:
            for id, thing in seed(World(self.settings, things)).items():
                self._plan_definitions(things, id, thing, 0.0)
        self._settle()

    @property
    def settings(self) -> Settings:
        return read_settings(self._folder)

    def create(self, token: str, inputs: Object) -> tuple[str, Object]:
        """Make a resource; its id and all its properties.

        Raises:
            Refused: nothing was made.
            RefusedPartially: it is there, in an error state.
        """
        self._settle()
        settings, family, failure = self.settings, FAMILIES[token], ""
        with self.held.change() as things:
            world = World(settings, things)
            id = family.id(world, inputs)
            try:
                refusals_others.api_disabled(world, token)
                family.refuse(world, id, inputs)
            except Refused as refused:
                raise _in_words_of_provider(token, _creating(world, token, inputs), refused) from None
            thing = family.fill(world, id, inputs)
            if token == NODE_POOL:
                failure = self._operation(world, inputs)
                if failure:
                    thing = Thing(thing.outputs, {**thing.own, "sizes": {}})
            if token == CLUSTER:
                self._first_pool(world, id, inputs)
                filled_cluster.make_identity_pool(world, thing)
            things.put(token, id, thing)
            keep_content(settings, token, thing)
            # GKE goes on where the program ends early: what is planned comes with whatever calls next.
            took = family.minutes * settings.seconds_per_minute
            if token == NODE_POOL:
                things.plan(time.time() + took, NODES, id)
            if token == CLUSTER:
                self._plan_definitions(things, id, thing, took + DEFINITIONS_MINUTES * settings.seconds_per_minute)
        self._wait(settings, family.minutes)
        if failure:
            raise RefusedPartially(f"Error waiting for creating GKE NodePool: {failure}", id, self._shown(token, id))
        self._settle()
        if token == CLUSTER:
            self._settle_after(DEFINITIONS_MINUTES * settings.seconds_per_minute)
        return id, self._shown(token, id)

    def _operation(self, world: World, inputs: Object) -> str:
        try:
            refusals_pool.fail_operation(world, pool_asked(world, inputs))
        except OperationFailed as failed:
            return str(failed)
        return ""

    def _first_pool(self, world: World, id: str, inputs: Object) -> None:
        if inputs.get("removeDefaultNodePool") is not True:
            world.things.put(CLUSTER, id, FAMILIES[CLUSTER].fill(world, id, inputs))
            first = default_pool(id, inputs)
            world.things.put(NODE_POOL, filled_pool.pool_id(world, first), filled_pool.fill_pool(world, first))

    def read(self, token: str, id: str) -> Object | None:
        """A resource as it is now; None where it is gone."""
        self._settle()
        with self.held.change() as things:
            return None if things.get(token, id) is None else self._outputs(World(self.settings, things), token, id)

    def update(self, token: str, id: str, changed: Object) -> Object:
        """Change a resource in place; all its properties afterwards.

        Args:
            changed: the properties that are sent, each with its whole new value; None takes it away.

        Raises:
            Refused: it stays as it was.
        """
        self._settle()
        settings = self.settings
        with self.held.change() as things:
            world, before = World(settings, things), things.get(token, id)
            if before is None:
                raise not_found(f"The resource '{id}' was not found")
            try:
                after = self._changed(world, token, id, before, changed)
            except Refused as refused:
                raise _in_words_of_provider(token, f'updating {FAMILIES[token].name} "{id}"', refused) from None
            things.put(token, id, after)
            keep_content(settings, token, after)
            later = DEFINITIONS_MINUTES * settings.seconds_per_minute
            if token == CLUSTER and not ray_operator(before.outputs):
                self._plan_definitions(things, id, after, later)
        self._wait(settings, FAMILIES[token].minutes / 2)
        if token == NODE_POOL:
            self._nodes_now(id, node_names(id, before))
        if token == CLUSTER:
            self._settle_after(later)
        return self._shown(token, id)

    def _changed(self, world: World, token: str, id: str, before: Thing, changed: Object) -> Thing:
        merged: Object = {name: value for name, value in {**before.outputs, **changed}.items() if value is not None}
        if token == NODE_POOL:
            old, pool = filled_pool.shown_pool(id, before), pool_asked(world, merged)
            refusals_pool.refuse_change(world, pool, changed, old)
            try:
                refusals_pool.fail_change(world, pool, changed)
            except OperationFailed as failed:
                raise Refused(f"Error waiting for updating GKE node pool: {failed}") from None
            return filled_pool.change_pool(world, id, before, changed)
        if token == CLUSTER:
            refuse_cluster_change(world, id, changed)
            after = filled_cluster.change_cluster(world, id, before, changed)
            filled_cluster.make_identity_pool(world, after)
            return after
        if token == SUBNETWORK:
            refusals_network.secondary_range_changed(world, before.outputs, changed)
            refusals_network.secondary_range_in_use(world, id, before.outputs, changed)
            refusals_network.secondary_ranges_exchanged(world, before.outputs, changed)
            refusals_network.ranges_of_one(world, id, merged)
            refusals_network.range_taken(world, id, merged)
        return Thing(merged, before.own)

    def delete(self, token: str, id: str, state: Object) -> None:
        """Take a resource away; one that is gone already is no error.

        Args:
            state: what the program remembers of it; the provider looks there for `forceDestroy` and the like.

        Raises:
            Refused: it is still needed.
        """
        self._settle()
        settings, gone = self.settings, list[str]()
        with self.held.change() as things:
            world, thing = World(settings, things), things.get(token, id)
            if thing is None:
                return
            try:
                self._refuse_delete(world, token, id, state)
            except Refused as refused:
                raise _in_words_of_provider(token, f"when reading or editing {FAMILIES[token].name}", refused) from None
            if token == NODE_POOL:
                gone = node_names(id, thing)
            if token == CLUSTER:
                for pool_id, pool in filled_pool.pools_of(world, id).items():
                    gone += node_names(pool_id, pool)
                    things.drop(NODE_POOL, pool_id)
            self._drop(world, token, id, state)
            drop_content(settings, token, thing)
        side = self._node_side()
        if gone and side is not None:
            side.remove_nodes(gone)
        self._wait(settings, FAMILIES[token].minutes / 2)

    def _refuse_delete(self, world: World, token: str, id: str, state: Object) -> None:
        if token == NETWORK:
            refusals_network.network_in_use(world, id)
        if token == SUBNETWORK:
            refusals_network.subnetwork_in_use(world, id)
        if token == RESOURCE_POLICY:
            refusals_network.policy_in_use(world, id)
        if token == BUCKET:
            refusals_others.bucket_full(world, id, state)

    def _drop(self, world: World, token: str, id: str, state: Object) -> None:
        if token in (KEY_RING, CRYPTO_KEY) or (token == SERVICE and state.get("disableOnDestroy") is not True):
            # Keys are never deleted, and an API stays enabled unless the program says otherwise.
            return
        world.things.drop(token, id)
        if token == ROUTER:
            for nat, thing in world.every(ROUTER_NAT).items():
                if refusals_network.nat_of(world, thing.outputs, id):
                    world.things.drop(ROUTER_NAT, nat)
        members = filled_others.MEMBERS_OF.get(token, "")
        for kind in (members, BUCKET_OBJECT if token == BUCKET else ""):
            for one, thing in world.every(kind).items():
                if thing.own.get("target") == id:
                    world.things.drop(kind, one)

    def invoke(self, token: str, args: Object) -> Object:
        """The result of a function.

        Raises:
            Refused: what it asks for is not there.
        """
        self._settle()
        with self.held.change() as things:
            world = World(self.settings, things)
            return answer(world, token, args, lambda id: self._outputs(world, CLUSTER, id))

    def nodes_changed(self, pool_id: str, before: list[str]) -> None:
        """Bring the cluster's nodes in line with the pool, whose nodes were the named ones."""
        self._nodes_now(pool_id, before)

    def _shown(self, token: str, id: str) -> Object:
        with self.held.change() as things:
            return self._outputs(World(self.settings, things), token, id)

    def _outputs(self, world: World, token: str, id: str) -> Object:
        thing = world.get(token, id) or Thing({})
        if token == CLUSTER:
            return filled_cluster.shown_cluster(world, id, thing, read_control_plane(self._folder))
        if token == NODE_POOL:
            return filled_pool.shown_pool(id, thing)
        if token in filled_others.MEMBERS:
            return {**thing.outputs, "etag": filled_others.etag(token, world, str(thing.own.get("target")))}
        return thing.outputs

    def _wait(self, settings: Settings, minutes: float) -> None:
        if settings.seconds_per_minute > 0:
            time.sleep(minutes * settings.seconds_per_minute)

    def _side(self) -> KubernetesSide | None:
        plane = read_control_plane(self._folder)
        return None if plane is None else self._kubernetes(plane)

    def _node_side(self) -> KubernetesSide | None:
        return None if self.settings.machines else self._side()

    def _nodes_now(self, pool_id: str, before: list[str]) -> None:
        side = self._node_side()
        with self.held.change() as things:
            pool = things.get(NODE_POOL, pool_id)
        if side is None or pool is None:
            return
        wanted = node_names(pool_id, pool)
        side.remove_nodes([name for name in before if name not in wanted])
        side.add_nodes(nodes(pool_id, pool))

    def _plan_definitions(self, things: Things, id: str, cluster: Thing, seconds: float) -> None:
        if ray_operator(cluster.outputs) and read_control_plane(self._folder) is not None:
            things.plan(time.time() + seconds, DEFINITIONS, id)

    def _settle_after(self, seconds: float) -> None:
        if seconds > 0:
            threading.Thread(target=self._settle_later, args=(seconds,), daemon=True).start()
        else:
            self._settle()

    def _settle_later(self, seconds: float) -> None:
        for _ in range(TRIES):
            time.sleep(seconds + SLACK_S)
            if not self._folder.exists():
                return
            try:
                self._settle()
            except httpx.HTTPError:
                # The work is due still, and the API server may be on its way.
                seconds = PAUSE_S
            else:
                return

    def _settle(self) -> None:
        """Do what has fallen due meanwhile, also in an earlier process."""
        with self.held.change() as things:
            due = things.take_due(time.time())
        for work, id in due:
            try:
                self._do(work, id)
            except httpx.HTTPError:
                with self.held.change() as things:
                    things.plan(time.time(), work, id)
                raise

    def _do(self, work: str, id: str) -> None:
        plane = read_control_plane(self._folder)
        if work == NODES:
            self._nodes_now(id, [])
        elif plane is not None:
            self._kubernetes(plane).install_definitions(plane.crd_files)


def _creating(world: World, token: str, inputs: Object) -> str:
    name = FAMILIES[token].name
    if token not in filled_others.MEMBERS:
        return f"creating {name}"
    policy = name.format(filled_others.target_of(token, world, inputs))
    return f"applying IAM policy for {policy}: Error setting IAM policy for {policy}"


def _in_words_of_provider(token: str, doing: str, refused: Refused) -> Refused:
    text = str(refused)
    if token in BARE or not text.startswith("googleapi: "):
        return refused
    if token == NODE_POOL:
        return Refused(f"error {doing}: {text}") if doing.startswith("creating") else refused
    return Refused(f"Error {doing}: {text}")
