"""The real engine and Google's own SDK on the stand-in: make, see no change, edit, take away."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import automation as auto

from infra.pulumi_cli import obtain_cli

pytestmark = [
    pytest.mark.slow,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]
ROOT = Path(__file__).parents[2]


def program(topology: str) -> Callable[[], None]:
    """A network, a cluster and a pool."""

    def declare() -> None:
        network = gcp.compute.Network("net", auto_create_subnetworks=False)
        cluster = gcp.container.Cluster(
            "c",
            network=network.id,
            location="us-east5-b",
            initial_node_count=1,
            remove_default_node_pool=True,
            deletion_protection=False,
            resource_labels={"team": "a"},
        )
        gcp.container.NodePool(
            "tpu",
            cluster=cluster.id,
            node_count=4,
            placement_policy={"type": "COMPACT", "tpu_topology": topology},
            node_config={"machine_type": "ct6e-standard-4t", "spot": True},
        )
        pulumi.export("endpoint", cluster.endpoint)

    return declare


@pytest.fixture
def stack(tmp_path: Path) -> auto.Stack:
    """A stack of its own, with the stand-in on the engine's PATH."""
    cli = obtain_cli(print)
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    plugin = plugins / "pulumi-resource-gcp"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.gcp_provider.fake "$@"\n')
    plugin.chmod(0o755)
    (tmp_path / "state").mkdir()
    stack = auto.create_stack(
        stack_name="dev",
        project_name="rig",
        program=program("4x4"),
        opts=auto.LocalWorkspaceOptions(
            work_dir=str(tmp_path),
            project_settings=auto.ProjectSettings(
                name="rig", runtime="python", backend=auto.ProjectBackend(url=(tmp_path / "state").as_uri())
            ),
            pulumi_command=auto.PulumiCommand(root=str(cli.bin_dir.parent)),
            env_vars={
                "PATH": os.pathsep.join([str(plugins), str(cli.bin_dir), os.environ["PATH"]]),
                "PYTHONPATH": str(ROOT),
                "PULUMI_HOME": str(tmp_path / "home"),
                "PULUMI_CONFIG_PASSPHRASE": "rig",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                "FAKE_CLOUD": str(tmp_path / "cloud.json"),
            },
        ),
    )
    stack.set_config("gcp:project", auto.ConfigValue("proj"))
    stack.set_config("gcp:zone", auto.ConfigValue("us-east5-b"))
    return stack


def changes(preview: auto.PreviewResult) -> Counter[str]:
    """How many resources of which operation, the stack itself left out."""
    counted = Counter({str(getattr(op, "value", op)): number for op, number in preview.change_summary.items()})
    stack_operation = "create" if counted["create"] else "same"
    counted[stack_operation] -= 1
    return +counted


def test_a_network_a_cluster_and_a_pool_live_on_the_stand_in(stack: auto.Stack, tmp_path: Path) -> None:
    assert changes(stack.preview()) == {"create": 3}
    up = stack.up()
    assert up.outputs["endpoint"].value == "127.0.0.1"
    assert changes(stack.preview()) == {"same": 3}
    stack.refresh()
    assert changes(stack.preview()) == {"same": 3}

    stack.workspace.program = program("8x8")
    assert changes(stack.preview()) == {"same": 2, "update": 1}
    stack.up()
    # Nothing was sent, so the next preview wants it again.
    assert changes(stack.preview()) == {"same": 2, "update": 1}

    exported = json.dumps(stack.export_stack().deployment)
    assert '"effectiveLabels": {"4dabf18193072939515e22adb298388d"' in exported
    stack.destroy()
    assert json.loads((tmp_path / "cloud.json").read_text()) == {}
