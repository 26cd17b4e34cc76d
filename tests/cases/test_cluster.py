"""Clusters that were replaced for nothing, or outlived what ran in them."""

from collections.abc import Mapping

import pytest

from tests.cases.declared import CLUSTER, NODE_POOL, Declared, declared
from tests.cases.stacks import config, pool


def only_cluster(resources: list[Declared]) -> Declared:
    (found,) = [one for one in resources if one.type == CLUSTER]
    return found


PLACES = ({"location": "region"}, {"location": "zone"})


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place["location"]))
def test_the_first_pool_of_a_cluster_is_deleted_and_what_described_it_is_never_compared(
    place: Mapping[str, str],
) -> None:
    """pulumi-gcp#744, pulumi-gcp#2247: Google shows no `nodeConfig` once that pool is gone, and the key replaces."""
    cluster = only_cluster(declared(config(pool(), cluster={"deletion_protection": False, **place})))
    assert cluster.inputs["removeDefaultNodePool"] is True
    assert cluster.inputs["initialNodeCount"] == 1
    assert "nodeConfig" in cluster.ignore_changes


def test_node_pools_are_resources_of_their_own_and_none_stands_in_the_cluster() -> None:
    """pulumi-gcp#88: with pools inside, a second one replaces the whole cluster."""
    resources = declared(config(pool(slices=2), pool(name="b", topology="2x2")))
    assert "nodePools" not in only_cluster(resources).inputs
    pools = [one.inputs["name"] for one in resources if one.type == NODE_POOL]
    assert sorted(pools) == ["a-0", "a-1", "b-0", "cpu"]


def test_nothing_that_replaces_a_cluster_is_left_to_chance() -> None:
    """pulumi-gcp#744: a name of its own and no description, since a changed one of either makes a new cluster."""
    first, second = (only_cluster(declared(config(pool()))) for _ in range(2))
    assert first == second
    assert first.inputs["name"] == "tpu-ray-dev"
    assert "description" not in first.inputs


@pytest.mark.parametrize("written", [True, False, None], ids=["true", "false", "not written"])
def test_deletion_protection_is_written_out_and_holds_for_every_node_pool(written: bool | None) -> None:
    """pulumi-gcp#1394, terraform-google-kubernetes-engine#1866: the flag alone lets `destroy` take the node pools."""
    cluster: dict[str, object] = {} if written is None else {"deletion_protection": written}
    resources = declared(config(pool(slices={"min": 1, "max": 3}), pool(name="b", topology="2x2"), cluster=cluster))
    wanted = written is not False
    assert only_cluster(resources).inputs["deletionProtection"] is wanted
    assert {one.name: one.protect for one in resources if one.type in (CLUSTER, NODE_POOL)} == dict.fromkeys(
        ("cluster", "cpu", "a-0", "a-1", "a-2", "b-0"), wanted
    )
    kubernetes = [one for one in resources if one.type.startswith("kubernetes:")]
    assert kubernetes
    # Another run replaces a run, and loses nothing: what it has left is in the bucket.
    assert {one.type for one in kubernetes if one.protect is not wanted} <= {"kubernetes:ray.io/v1:RayJob"}


def test_pools_in_a_cluster_that_was_there_before_are_protected_too() -> None:
    """terraform-provider-google#18225, in a cluster that the stack does not make: only `protect` is left."""
    resources = declared(config(pool(), cluster={"existing": "prod"}))
    assert [one for one in resources if one.type == CLUSTER] == []
    assert [one.protect for one in resources if one.type == NODE_POOL] == [True]


def test_a_protected_stack_still_deletes_no_bucket() -> None:
    """pulumi-gcp#1394: what the last `destroy`, after the flag is off, may take with it is said by another key."""
    resources = declared(config(pool(), cluster={"deletion_protection": False}))
    (bucket,) = [one for one in resources if one.type == "gcp:storage/bucket:Bucket"]
    assert bucket.retain_on_delete
    assert bucket.inputs["forceDestroy"] is False
