"""Mistakes in a slice pool's arguments, as a Python program is told of them."""

import asyncio
from typing import Any, cast

import pulumi
import pytest

from infra.components.arguments import ArgumentsError, argument_problems
from infra.stack import Problem
from tpu_ray import Network, NetworkArgs, NodeAccount, NodeAccountArgs, SlicePool, SlicePoolArgs

ARGUMENTS: dict[str, Any] = {
    "generation": "v6e",
    "topology": "4x4",
    "project": "my-tpu-project",
    "zone": "us-east5-b",
    "cluster": "projects/my-tpu-project/locations/us-east5-b/clusters/mine",
    "node_account": "tpu-nodes@my-tpu-project.iam.gserviceaccount.com",
}


def told(**changes: object) -> dict[str, str]:
    """The error's text by argument, where None takes one away."""
    with pytest.raises(ArgumentsError) as refused:
        SlicePool("train", cast(SlicePoolArgs, {**ARGUMENTS, **changes}))
    # Pulumi ends a program with the text of a RunError, and with the traceback of any other.
    assert isinstance(refused.value, pulumi.RunError)
    return {problem.key: str(problem) for problem in refused.value.problems}


def test_the_text_has_key_value_allowed_and_nearest() -> None:
    assert told(topology="4x5") == {
        "topology": "topology: 4x5\n"
        "    a v6e slice has one of these topologies, the shorter side first\n"
        "    allowed: 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16\n"
        "    nearest: 4x4"
    }


def test_all_mistakes_are_told_at_once_in_the_order_of_the_arguments() -> None:
    found = told(zone=None, cluster="mine", slices_min=3, slices_max=2, generation="v6", topolgy="4x4", project=None)
    assert list(found) == ["generation", "slices_min", "project", "zone", "cluster", "topolgy"]
    assert found["generation"].endswith("nearest: v6e")
    assert found["slices_min"].startswith("slices_min: 3\n    more slices at least than at most (2)")
    assert found["topolgy"].endswith("nearest: topology")


def test_numbers_of_slices_are_told_as_they_are_written() -> None:
    assert list(told(slices_max="2")) == ["slices_max"]
    assert list(told(capacity="flex-start", slices_min=1)) == ["slices_min"]


def test_an_output_may_stand_where_a_preview_need_not_know_the_value() -> None:
    async def found() -> list[Problem]:
        output = pulumi.Output.from_input("x")
        return list(argument_problems({**ARGUMENTS, "cluster": output, "topology": output}, SlicePoolArgs))

    # `asyncio.run` would leave the thread without a loop, which Pulumi's mocks want to find.
    loop = asyncio.new_event_loop()
    problems = loop.run_until_complete(found())
    loop.close()
    assert [problem.key for problem in problems] == ["topology"]


def test_a_resource_is_not_its_id() -> None:
    resource = object.__new__(pulumi.ComponentResource)
    found = told(cluster=resource)
    assert found == {"cluster": "cluster\n    here belongs a property of the resource, not the whole of it"}


def test_a_second_interface_needs_both_names() -> None:
    assert list(told(second_nic=True, second_network="n")) == ["second_subnetwork"]


def test_what_a_slice_pool_is_made_in_is_checked_alike() -> None:
    wrong = cast(NetworkArgs, {"project": "p", "region": "r", "google_name": "n", "node": "10.0.0.0/20"})
    with pytest.raises(ArgumentsError) as refused:
        Network("net", wrong)
    assert [problem.key for problem in refused.value.problems] == ["nodes", "pods", "services", "node"]
    with pytest.raises(ArgumentsError, match="account_id"):
        NodeAccount("nodes", cast(NodeAccountArgs, {"project": "p"}))
