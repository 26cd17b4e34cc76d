"""The machines of node pools: a slice comes, goes and is repaired whole, single hosts alone."""

import threading
from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, pool, scaled
from tests.cluster.doubles import SHORT, SLICE, Cluster, EmulatedMachines, World, pending, stock
from tests.rig.cloud import drift
from tests.rig.cloud.settings import Stock
from tests.rig.cloud.world import NODE_POOL
from tests.rig.gke_side.instances import delete_instance, pools
from tests.rig.gke_side.side import gke_side
from tests.rig.gke_side.slices import reconcile

ONE = f"{CLUSTER_ID}/nodePools/one"
SINGLE: dict[str, object] = {"name": "one", "placementPolicy": None, "nodeCount": 3}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_pool_of_fixed_size_gets_its_machines_with_what_gke_puts_on_nodes(world: World) -> None:
    names = world.make()
    assert sorted(world.machines.started) == sorted(names)
    assert len(names) == 4
    started = world.cluster.held[names[0]]
    assert started["metadata"]["labels"]["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert started["status"]["capacity"]["google.com/tpu"] == "4"
    world.look()
    assert len(world.machines.started) == 4


def test_a_slice_that_lost_a_host_goes_whole_and_comes_whole_under_new_names(world: World) -> None:
    old = world.make()
    world.machines.crash(old[1])
    world.look()
    assert world.machines.stopping == dict.fromkeys([old[0], *old[2:]], SHORT.grace_s)
    assert old[1] not in world.cluster.held
    world.look()
    assert world.machines.started == old, "nothing starts while the old hosts are there"
    world.settle()
    new = world.names()
    assert len(new) == 4
    assert not set(new) & set(old)
    assert world.machines.running() == set(new) == set(world.cluster.held)


def test_a_host_that_is_deleted_takes_its_slice_along(world: World) -> None:
    old = world.make()
    delete_instance(world.cloud, old[0])
    world.look()
    assert world.machines.stopping == {old[0]: 0.0, **dict.fromkeys(old[1:], SHORT.grace_s)}
    world.settle()
    assert world.machines.running() == set(world.names())
    assert not set(world.names()) & set(old)


def test_hosts_of_other_slices_stay(world: World) -> None:
    world.make()
    other = world.make(name="other")
    world.machines.crash(world.names()[0])
    world.look()
    world.settle()
    assert world.names(f"{CLUSTER_ID}/nodePools/other") == other
    assert [world.machines.started.count(name) for name in other] == [1, 1, 1, 1]


def test_a_single_host_is_replaced_alone_under_its_name(world: World) -> None:
    names = world.make(**SINGLE)
    world.machines.crash(names[1])
    world.look()
    assert world.names(ONE) == names
    assert not world.machines.stopping
    assert [world.machines.started.count(name) for name in names] == [1, 2, 1]


def test_a_single_host_that_is_deleted_comes_again(world: World) -> None:
    names = world.make(**SINGLE)
    delete_instance(world.cloud, names[2])
    world.look()
    assert world.machines.stopping == {names[2]: 0.0}
    world.settle()
    assert [world.machines.started.count(name) for name in names] == [1, 1, 2]


def test_machines_go_with_their_pool_and_their_nodes_after_them(world: World) -> None:
    names = world.make()
    world.cloud.delete(NODE_POOL, SLICE, {})
    world.look()
    assert world.machines.stopping == dict.fromkeys(names, SHORT.grace_s)
    assert set(world.cluster.held) == set(names)
    world.settle()
    assert not world.machines.running()
    assert not world.cluster.held


def test_a_resize_from_outside_is_followed(world: World) -> None:
    world.make(**scaled(0, 4))
    assert not world.machines.started
    drift.autoscaled(world.cloud, SLICE, 4)
    world.look()
    assert world.machines.running() == set(world.names())


def test_pods_of_a_machine_that_crashed_say_nothing_of_a_shutdown(world: World) -> None:
    names = world.make()
    world.cluster.pend(pending("a-0"), pending("a-1"))
    world.cluster.bind("a-0", names[0])
    world.cluster.bind("a-1", names[1])
    world.machines.crash(names[0])
    world.look()
    world.settle()
    phases = {name: pod["status"]["phase"] for name, pod in world.cluster.put.items()}
    assert phases == {"a-0": "Running", "a-1": "Failed"}


def test_a_slice_for_which_there_are_too_few_machines_starts_none(world: World) -> None:
    world.make()
    (found,) = pools(world.cloud)
    steps = reconcile([found], set(), {}, set(), [Stock.model_validate(each) for each in stock(3)], 0.0)
    assert steps.start == ()
    assert steps.waiting == {SLICE: found.names}


def test_of_single_hosts_those_start_for_which_there_are_machines(world: World) -> None:
    world.make(**SINGLE)
    (found,) = pools(world.cloud)
    steps = reconcile([found], set(), {}, set(), [Stock.model_validate(each) for each in stock(2)], 0.0)
    assert len(steps.start) == 2
    assert steps.waiting == {ONE: found.names[2:]}


def test_a_second_look_at_machines_that_run_already_starts_nothing(tmp_path: Path) -> None:
    first = World(tmp_path)
    names = first.make()
    with gke_side(first.cloud, first.cluster, first.machines, SHORT, look_s=0.01):
        pass
    assert first.machines.started == names


def test_machines_of_no_pool_are_cleared_away_also_those_of_an_earlier_look(world: World) -> None:
    world.machines.start({"metadata": {"name": "left-over"}})
    world.look()
    assert world.machines.stopping == {"left-over": SHORT.grace_s}
    world.settle()
    assert not world.cluster.held


class Started(EmulatedMachines):
    """Says when all hosts of a slice were started."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.whole = threading.Event()

    def running(self) -> set[str]:
        alive = set(super().running())
        if len(alive) == 4:
            self.whole.set()
        return alive


def test_google_looks_after_the_cluster_until_the_block_ends(world: World) -> None:
    machines = Started(world.cluster)
    with gke_side(world.cloud, world.cluster, machines, SHORT, look_s=0.01):
        world.cloud.create(NODE_POOL, pool())
        assert machines.whole.wait(60)
    assert set(machines.alive) == set(world.names())
    assert "gke-side" not in {thread.name for thread in threading.enumerate()}


class Broken(EmulatedMachines):
    """Machines that do not start."""

    def start(self, node: object) -> None:
        raise OSError("no room for a kubelet")


def test_what_broke_ends_the_block(world: World) -> None:
    world.cloud.create(NODE_POOL, pool())
    with (
        pytest.raises(OSError, match="no room for a kubelet"),
        gke_side(world.cloud, world.cluster, Broken(world.cluster), SHORT),
    ):
        pass
