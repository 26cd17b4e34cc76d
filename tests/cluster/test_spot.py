"""Spot machines are taken away, and come again when there are some."""

from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, scaled
from tests.cluster.doubles import SLICE, World, pending, stock, workers
from tests.rig.gke_side.instances import NOTICE_S, preempt

ONE = f"{CLUSTER_ID}/nodePools/one"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def run(world: World, names: list[str]) -> None:
    """One pod on each node."""
    world.cluster.pend(*workers(len(names)))
    for pod, node in zip(list(world.cluster.put), names, strict=True):
        world.cluster.bind(pod, node)


@pytest.mark.parametrize("whole", [True, False])
def test_a_preempted_slice_has_thirty_seconds_and_goes_whole(world: World, whole: bool) -> None:
    names = world.make(node__spot=True)
    run(world, names)
    preempt(world.cloud, SLICE if whole else names[2])
    world.look()
    assert world.machines.stopping == dict.fromkeys(names, NOTICE_S)
    assert NOTICE_S == 30
    assert sorted(world.cluster.ending) == sorted(names)
    assert {pod["status"]["phase"] for pod in world.cluster.pods()} == {"Running"}
    world.settle()
    for pod in world.cluster.pods():
        assert pod["status"]["phase"] == "Failed"
        assert pod["status"]["reason"] == "Terminated"
        assert pod["status"]["message"] == "Pod was terminated in response to imminent node shutdown."
    assert not set(names) & set(world.cluster.held)


def test_the_notice_is_as_long_as_is_said(world: World) -> None:
    names = world.make(node__spot=True)
    preempt(world.cloud, names[0], notice_s=3)
    world.look()
    assert set(world.machines.stopping.values()) == {3.0}


def test_pods_that_had_ended_before_keep_what_they_said(world: World) -> None:
    names = world.make(node__spot=True)
    run(world, names)
    world.cluster.put["a-0"]["status"] = {"phase": "Succeeded"}
    preempt(world.cloud, SLICE)
    world.look()
    world.settle()
    assert world.cluster.put["a-0"]["status"] == {"phase": "Succeeded"}
    assert world.cluster.put["a-1"]["status"]["phase"] == "Failed"


def test_a_preempted_slice_comes_again_when_there_are_machines_and_not_before(world: World) -> None:
    old = world.make(node__spot=True)
    preempt(world.cloud, SLICE)
    world.settings(stock=stock(3))
    world.look()
    world.settle()
    world.look(3600)
    assert not world.machines.running()
    world.settings(stock=stock(4))
    world.look()
    assert world.machines.running() == set(world.names())
    assert not set(world.names()) & set(old)


def test_a_single_host_goes_alone_and_comes_again_under_its_name(world: World) -> None:
    names = world.make(name="one", placementPolicy=None, nodeCount=2, node__spot=True)
    preempt(world.cloud, names[0])
    world.look()
    assert world.machines.stopping == {names[0]: NOTICE_S}
    world.settle()
    assert [world.machines.started.count(name) for name in names] == [2, 1]


def test_a_notice_holds_once(world: World) -> None:
    names = world.make(name="one", placementPolicy=None, nodeCount=1, node__spot=True)
    preempt(world.cloud, ONE)
    world.look()
    world.settle()
    world.look(3600)
    assert not world.machines.stopping
    assert world.machines.running() == set(names)


def test_machines_that_are_not_spot_are_not_taken(world: World) -> None:
    names = world.make()
    with pytest.raises(ValueError, match="not on spot"):
        preempt(world.cloud, names[0])
    with pytest.raises(ValueError, match="not there"):
        preempt(world.cloud, "gke-tpu-none")


def test_a_preempted_pool_that_scales_asks_again_for_its_pods(world: World) -> None:
    """The pods of a lost slice are told what keeps the next one from coming, and it comes for them."""
    world.make(node__spot=True, **scaled(0, 4))
    world.cluster.pend(*workers())
    world.look(1)
    for pod, node in zip(list(world.cluster.put), world.names(), strict=True):
        world.cluster.bind(pod, node)
    preempt(world.cloud, SLICE)
    world.settings(stock=stock(0))
    world.look(1)
    world.settle()
    assert world.names() == []
    world.cluster.put = {}
    world.cluster.pend(*(pending(f"b-{number}") for number in range(4)))
    world.look(1)
    assert world.cluster.said("FailedScaleUp") == [
        "Node scale up in zones us-east5-b associated with this pod failed: GCE out of resources. "
        "Pod is at risk of not being scheduled."
    ]
    world.settings(stock=stock(4))
    world.look(30)
    world.look()
    assert len(world.machines.running()) == 4
