"""A slice pool as a program in another language makes it: its arguments come over the protocol, not from Python."""

import pytest

from tests.package.hosted import COMPONENT, Plugin, urn
from tests.rig.gcp.values import UNKNOWN, Object, plain_object, read_struct

POOL = "gcp:container/nodePool:NodePool"
ARGUMENTS: Object = {
    "generation": "v6e",
    "topology": "4x4",
    "project": "my-tpu-project",
    "zone": "us-east5-b",
    "cluster": "projects/my-tpu-project/locations/us-east5-b/clusters/mine",
    "nodeAccount": "tpu-nodes@my-tpu-project.iam.gserviceaccount.com",
}


def test_node_pools_are_children_and_their_names_come_back(hosted: Plugin) -> None:
    made = hosted.construct("train", {**ARGUMENTS, "slicesMin": 2, "slicesMax": 3})
    component, *_ = hosted.monitor.registered
    assert (component.type, component.name, component.custom) == (COMPONENT, "train", False)
    assert [(pool.type, pool.name, pool.parent) for pool in hosted.children()] == [
        (POOL, name, urn(COMPONENT, "train")) for name in ("train-0", "train-1", "train-2")
    ]
    first, second, on_demand = hosted.made()
    # 4x4 chips of v6e on hosts of 4 are 4 hosts; two slices are kept and the third comes on demand.
    assert first["nodeCount"] == second["nodeCount"] == 4
    assert on_demand["autoscaling"] == {"minNodeCount": 0, "maxNodeCount": 4, "locationPolicy": "ANY"}
    assert plain_object(first["nodeConfig"])["machineType"] == "ct6e-standard-4t"
    assert first["cluster"] == ARGUMENTS["cluster"]
    assert made.urn == urn(COMPONENT, "train")
    assert read_struct(made.state) == {"nodePools": ["train-0", "train-1", "train-2"]}


def test_a_cluster_that_is_still_to_come_is_passed_on(hosted: Plugin) -> None:
    hosted.construct("train", {**ARGUMENTS, "cluster": UNKNOWN, "nodeAccount": UNKNOWN})
    (pool,) = hosted.made()
    assert pool["cluster"] is UNKNOWN
    assert plain_object(pool["nodeConfig"])["serviceAccount"] is UNKNOWN


def test_every_mistake_is_told_at_once_in_the_names_that_the_program_uses(hosted: Plugin) -> None:
    changes: Object = {"topology": "4x5", "slicesMin": 3, "slicesMax": 2, "capacity": "cheap", "machinetype": "x"}
    told = hosted.refusal("train", without({**ARGUMENTS, **changes}, "zone"))
    assert list(told) == ["", "topology", "slicesMin", "capacity", "zone", "machinetype"]
    assert told[""] == "SlicePool train cannot be made"
    assert told["topology"].startswith("a v6e slice has one of these topologies")
    assert told["topology"].endswith("nearest: 4x4")
    assert told["slicesMin"].startswith("more slices at least than at most (2)")
    assert "allowed: on-demand, spot, reservation, flex-start, queued" in told["capacity"]
    assert told["zone"] == "this argument is required and missing"
    assert told["machinetype"].endswith("nearest: machineType")
    assert not hosted.monitor.registered, "a component that cannot be made is not in the state"


@pytest.mark.parametrize("key", ["topology", "slicesMax", "capacity", "zone"])
def test_what_decides_how_much_is_made_has_to_be_known(hosted: Plugin, key: str) -> None:
    told = hosted.refusal("train", {**ARGUMENTS, key: UNKNOWN, "bootDiskGib": 10})
    # As a property of its own it would end the engine, which cannot print what it does not know.
    assert list(told) == ["", "bootDiskGib"]
    assert told[""].startswith(f"SlicePool train cannot be made; {key}: an output cannot stand here")


@pytest.mark.parametrize(
    ("wrong", "key", "says"),
    [
        ({"cluster": "mine"}, "cluster", "allowed: projects/my-project/locations/us-east5/clusters/my-cluster"),
        ({"slicesMax": 2.5}, "slicesMax", "must be a whole number"),
        ({"slicesMax": "two"}, "slicesMax", "must be a whole number"),
        ({"slicesMax": 0}, "slicesMax", "must be at least 1"),
        ({"capacity": "queued", "slicesMin": 1}, "slicesMin", "capacity: queued keeps no slice"),
        ({"capacity": "spot", "maxRunS": 3600}, "maxRunS", "gives its machines no end"),
        ({"secondNic": True, "secondNetwork": "n"}, "secondSubnetwork", "with secondNic the name"),
        ({"bootDiskGib": 10}, "bootDiskGib", "must be at least 50"),
    ],
)
def test_one_mistake(hosted: Plugin, wrong: Object, key: str, says: str) -> None:
    told = hosted.refusal("train", {**ARGUMENTS, **wrong})
    assert list(told) == ["", key]
    assert says in told[key]


def test_a_name_that_gives_too_long_names_of_node_pools(hosted: Plugin) -> None:
    # GKE takes 40 characters; 36 of the pool and `-1023` are 41.
    told = hosted.refusal("p" * 36, {**ARGUMENTS, "slicesMax": 1024})
    assert list(told) == ["", "name"]
    assert told["name"].startswith("slicesMax makes node pools up to")
    assert "41 characters" in told["name"]


def without(inputs: Object, key: str) -> Object:
    return {name: value for name, value in inputs.items() if name != key}
