"""The components as other languages get them: the schema that the plugin gives, over the protocol of Pulumi."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.components.slice_pool import Capacity

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the plugin says of itself."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, str(ROOT / "plugin"), "127.0.0.1:1"]
    with subprocess.Popen(command, cwd=elsewhere, stdout=subprocess.PIPE, text=True) as plugin:
        try:
            assert plugin.stdout is not None
            port = int(plugin.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                provider = provider_pb2_grpc.ResourceProviderStub(channel)
                answer = provider.GetSchema(provider_pb2.GetSchemaRequest(version=0), timeout=60, wait_for_ready=True)
                yield json.loads(answer.schema)
        finally:
            plugin.terminate()


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
