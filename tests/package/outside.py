"""A Pulumi program in a folder of its own, run by the real engine on the double of Google Cloud."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi import automation as auto

from infra.pulumi_cli import obtain_cli
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import CLUSTER, NODE_POOL
from tests.rig.gke import script

PROGRAMS = Path(__file__).parent / "programs"
PROJECT, ZONE = "tpu-ray-test", "us-east5-b"
DEADLINE_S = 300
KEPT = ("same", "read", "refresh")
Steps = list[tuple[str, str]]


class Outside:
    """A copy of one of `programs`, its stack, and the cloud that it is brought up in; all below `folder`.

    Args:
        path: folders that come first on PATH, e.g. those of another Python or of plugins.
    """

    def __init__(self, folder: Path, program: str, *path: Path) -> None:
        self.root = folder / "program"
        shutil.copytree(PROGRAMS / program, self.root)
        self.cloud_folder = folder / "cloud"
        write_settings(self.cloud_folder, Settings(project=PROJECT, zone=ZONE))
        plugins = folder / "plugins"
        plugins.mkdir()
        script(plugins / "pulumi-resource-gcp", f"{shlex.quote(sys.executable)} -m tests.rig.gcp")
        cli = obtain_cli(print)
        (folder / "state").mkdir()
        first = [plugins, *path, Path(sys.executable).parent, cli.bin_dir]
        self.environment = {
            "PATH": os.pathsep.join([*map(str, first), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "outside",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "TPU_RAY_RIG_CLOUD": str(self.cloud_folder),
        }
        self.stack = auto.create_stack(
            "dev",
            work_dir=str(self.root),
            opts=auto.LocalWorkspaceOptions(
                env_vars=self.environment, pulumi_command=auto.PulumiCommand(root=str(cli.bin_dir.parent))
            ),
        )
        self.configure({"gcp:project": PROJECT, "gcp:zone": ZONE})

    def configure(self, values: Mapping[str, str]) -> None:
        """Set keys of the stack."""
        self.stack.set_all_config({key: auto.ConfigValue(value) for key, value in values.items()})

    def preview(self) -> Steps:
        """What would be done."""
        events: list[auto.EngineEvent] = []
        self.stack.preview(on_event=events.append)
        return steps(events)

    def up(self) -> Steps:
        """Bring it up; what was done."""
        events: list[auto.EngineEvent] = []
        self.stack.up(on_event=events.append)
        return steps(events)

    def destroy(self) -> Steps:
        """Take it away; what was done."""
        events: list[auto.EngineEvent] = []
        self.stack.destroy(on_event=events.append)
        return steps(events)

    def pulumi(self, *arguments: str | Path) -> str:
        """Standard output of a `pulumi` command in the program's folder."""
        done = subprocess.run(
            ["pulumi", *arguments],
            cwd=self.root,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self) -> str:
        """What a user sees of a preview that fails."""
        try:
            self.stack.preview()
        except auto.CommandError as error:
            return str(error)
        raise AssertionError("the preview went well")

    def things(self, token: str) -> list[str]:
        """Names of everything of one type that Google has."""
        with Cloud(self.cloud_folder).held.change() as things:
            return [id.rpartition("/")[2] for id in things.every(token)]

    def comes_up_grows_and_goes(self) -> None:
        """The life of a slice pool `train` of 4x4 on a cluster of the same program; fails where a step is not right."""
        assert {operation for operation, _ in self.preview()} == {"create"}
        assert not self.things(CLUSTER)
        made = self.up()
        assert ("create", "SlicePool train") in made
        assert ("create", "NodePool train-0") in made
        assert self.things(CLUSTER) == ["mine"]
        assert sorted(self.things(NODE_POOL)) == ["default-pool", "train-0"]
        assert self.stack.outputs()["nodePools"].value == ["train-0"]
        assert self.preview() == []

        self.configure({"slices": "2"})
        assert self.preview() == [("create", "NodePool train-1")]
        assert self.up() == [("create", "NodePool train-1")]
        assert self.stack.outputs()["nodePools"].value == ["train-0", "train-1"]
        assert self.preview() == []
        assert self.parents("NodePool") == {"SlicePool"}

        assert {operation for operation, _ in self.destroy()} == {"delete"}
        assert not self.things(CLUSTER)
        assert not self.things(NODE_POOL)
        assert self.resources() == []

    def parents(self, kind: str) -> set[str]:
        """What the resources of one type are children of."""
        return {name(one["parent"]).split()[0] for one in self.resources() if name(one["urn"]).startswith(kind)}

    def resources(self) -> list[dict[str, Any]]:
        """What the stack's state has."""
        deployment = self.stack.export_stack().deployment
        assert deployment is not None
        found: list[dict[str, Any]] = deployment.get("resources", [])
        return found


def steps(events: list[auto.EngineEvent]) -> Steps:
    """(operation, resource) in the engine's order; the stack itself and what stays are left out."""
    told = [event.resource_pre_event.metadata for event in events if event.resource_pre_event]
    return [
        (str(one.op.value), name(one.urn))
        for one in told
        if one.op.value not in KEPT and not one.type.startswith("pulumi:")
    ]


def name(urn: str) -> str:
    """`urn:pulumi:dev::own::tpu-ray:index:SlicePool::train` is `SlicePool train`."""
    _, _, kinds, called = urn.split("::")
    return f"{kinds.rpartition('$')[2].rpartition(':')[2]} {called}"
