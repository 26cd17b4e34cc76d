"""The components as other languages get them: the schema that the plugin gives, over the protocol of Pulumi."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from infra.components.slice_pool import Capacity
from tests.package.hosted import DEADLINE_S, Plugin

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schema(hosted: Plugin) -> dict[str, Any]:
    """What the plugin says of itself."""
    answer = hosted.provider.GetSchema(provider_pb2.GetSchemaRequest(version=0), timeout=DEADLINE_S)
    found: dict[str, Any] = json.loads(answer.schema)
    return found


def test_the_slice_pool_is_offered_with_its_arguments(schema: dict[str, Any]) -> None:
    pool = schema["resources"]["tpu-ray:index:SlicePool"]
    assert pool["isComponent"]
    inputs = pool["inputProperties"]
    assert {"generation", "topology", "slicesMin", "slicesMax", "capacity", "reservation", "zone", "cluster"} <= set(
        inputs
    )
    assert set(pool["requiredInputs"]) == {"generation", "topology", "project", "zone", "cluster", "nodeAccount"}
    # What decides how much is made has to be known in a preview; the cluster may still be coming.
    assert inputs["topology"]["plain"]
    assert not inputs["cluster"].get("plain")
    assert pool["properties"]["nodePools"]["items"]["type"] == "string"
    assert "one GKE node pool per slice" in pool["description"]


def test_capacities_are_a_closed_set(schema: dict[str, Any]) -> None:
    words = [choice["value"] for choice in schema["types"]["tpu-ray:index:Capacity"]["enum"]]
    assert (
        words
        == [capacity.value for capacity in Capacity]
        == ["on-demand", "spot", "reservation", "flex-start", "queued"]
    )


def test_the_plugin_file_names_what_the_plugin_serves(schema: dict[str, Any]) -> None:
    told = yaml.safe_load((ROOT / "plugin" / "PulumiPlugin.yaml").read_text())
    assert (told["name"], told["version"]) == (schema["name"], schema["version"])


def test_arguments_are_flat(schema: dict[str, Any]) -> None:
    # The plugin passes them on by their names alone.
    assert [kind for kind, told in schema["types"].items() if "enum" not in told] == []
    for component in schema["resources"].values():
        assert not {"array", "object"} & {one.get("type") for one in component["inputProperties"].values()}
