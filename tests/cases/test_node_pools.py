"""Node pools that were replaced by a count, refused by their limits, or fought over."""

from typing import Any

import pytest

from tests.cases.declared import NODE_POOL, declared
from tests.cases.stacks import Config, config, mistakes, pool

IOWA: dict[str, Any] = {"region": "us-central1", "zone": "us-central1-a"}


def slices(stack: Config) -> dict[str, Any]:
    """The inputs of the stack's node pools with chips, by name."""
    found = {one.name: one.inputs for one in declared(stack) if one.type == NODE_POOL and one.name != "cpu"}
    return dict(sorted(found.items()))


def test_more_slices_of_several_hosts_are_more_node_pools_and_the_first_stays_as_it_was() -> None:
    """pulumi-gcp#412, terraform-provider-google#6354: `slices: 1 -> 2` of 4x4 is `-1` beside an unchanged `-0`."""
    one = slices(config(pool(topology="4x4", slices=1)))
    two = slices(config(pool(topology="4x4", slices=2)))
    assert list(one) == ["a-0"]
    assert list(two) == ["a-0", "a-1"]
    assert one["a-0"] == two["a-0"]
    assert [inputs["nodeCount"] for inputs in two.values()] == [4, 4]


def test_a_count_has_one_owner() -> None:
    """pulumi-gcp#412, upjet-provider-gcp#600: a number, or limits for the autoscaler, never both."""
    shapes = [(shape, count) for shape in ("2x2", "2x4", "4x4", "4x8") for count in (1, 2, {"min": 0, "max": 2})]
    shapes += [(shape, {"min": 1, "max": 3}) for shape in ("2x2", "4x4")]
    pools = [pool(topology=shape, slices=count, name=f"p{n}") for n, (shape, count) in enumerate(shapes)]
    found = [one for one in declared(config(*pools)) if one.type == NODE_POOL]
    assert len({one.name.rpartition("-")[0] for one in found}) == len(pools) + len(["cpu"])
    for one in found:
        if "nodeCount" in one.inputs:
            assert "autoscaling" not in one.inputs
            assert "initialNodeCount" not in one.inputs
        else:
            assert one.inputs["initialNodeCount"] == one.inputs["autoscaling"]["minNodeCount"]
            assert "initialNodeCount" in one.ignore_changes


def test_a_scaled_slice_has_a_limit_for_its_one_zone_and_no_total() -> None:
    """vllm-project/ci-infra#545: `Maximum node count 0 is not a valid size of TPU pod slice with topology 2x2x2`."""
    (ironwood,) = slices(config(pool("v7x", "2x2x2", slices={"min": 0, "max": 1}), **IOWA)).values()
    assert ironwood["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": 2, "locationPolicy": "ANY"}
    assert ironwood["nodeLocations"] == ["us-central1-a"]
    (trillium,) = slices(config(pool("v6e", "4x4", slices={"min": 0, "max": 1}))).values()
    assert trillium["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": 4, "locationPolicy": "ANY"}
    assert trillium["nodeLocations"] == ["us-east5-b"]


@pytest.mark.parametrize("capacity", ["on-demand", "spot", "reservation", "flex-start", "queued"])
def test_no_pool_has_a_total_limit_or_two_zones(capacity: str) -> None:
    """vllm-project/ci-infra#545, for slices of one host and of several and for every capacity."""
    reserved: dict[str, Any] = {"reservation": "held"} if capacity == "reservation" else {}
    nodes = {"2x2": 2, "2x4": 2, "4x4": 4, "8x8": 16}
    pools = [
        pool(name=f"p{shape}", topology=shape, slices={"min": 0, "max": 2}, capacity=capacity, **reserved)
        for shape in nodes
    ]
    found = slices(config(*pools))
    assert sorted(found) == ["p2x2-0", "p2x4-0", "p4x4-0", "p4x4-1", "p8x8-0", "p8x8-1"]
    for name, inputs in found.items():
        most = nodes[name.partition("-")[0].removeprefix("p")]
        assert inputs["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": most, "locationPolicy": "ANY"}
        assert inputs["nodeLocations"] == ["us-east5-b"]


TWO = ["us-east5-a", "us-east5-b"]


@pytest.mark.parametrize(("wrong", "nearest"), [({"zone": TWO}, None), ({"zones": TWO}, "zone")], ids=str)
def test_two_zones_for_one_pool_are_refused(wrong: dict[str, Any], nearest: str | None) -> None:
    """vllm-project/ci-infra#545: a slice is gathered in one zone."""
    found = mistakes(config(pool(**wrong)))
    assert {key: problem.nearest for key, problem in found.items()} == {f"pools[0].{key}": nearest for key in wrong}


def test_no_pool_declares_the_taint_that_gke_sets_itself() -> None:
    """terraform-provider-google#7928: `Found more than one taint with key google.com/tpu`."""
    for inputs in slices(config(pool(), pool(name="b", topology="2x2"))).values():
        assert "taints" not in inputs["nodeConfig"]
        assert "effectiveTaints" not in inputs["nodeConfig"]


def test_a_replaced_pool_goes_before_its_successor_comes() -> None:
    """pulumi#1620, pulumi-gcp#255: the name is taken, and the quota holds one of them."""
    ironwood = config(pool("v7x", "2x2x2", slices=2), **IOWA)
    for stack in (ironwood, config(pool(topology="2x2"), pool(name="b", topology="4x4"))):
        resources = [
            one for one in declared(stack) if one.type in (NODE_POOL, "gcp:compute/resourcePolicy:ResourcePolicy")
        ]
        assert all(one.delete_before_replace for one in resources)
        assert len(resources) >= 3
