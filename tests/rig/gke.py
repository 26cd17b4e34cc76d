"""A user's checkout whose `pulumi` finds the stand-in for Google, the real provider for Kubernetes, and a cloud."""

import os
import shlex
import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from infra.automation.operate import Operation, Outcome, operate
from infra.automation.project import find_project
from tests.checkout import ROOT, Checkout
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.held import Thing
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import CLUSTER
from tests.rig.kube.control_plane import ControlPlane
from tests.rig.kube.parts import kubernetes_provider

PASSED_ON = ("TPU_RAY_HOME", "XDG_STATE_HOME", "PULUMI_HOME", "PATH", "TPU_RAY_RIG_CLOUD")


class GkeCheckout(Checkout):
    """One stack and the cloud that it is brought up in, both below `folder`.

    `config` is written into its file in the place of the project's own; `settings` are the cloud's.
    """

    def __init__(
        self,
        folder: Path,
        stack: str,
        plane: ControlPlane,
        config: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(folder, stack)
        self.plane = plane
        if config is not None:
            self.with_config(config)
        self.cloud_folder = folder / "cloud"
        self.cloud_folder.mkdir()
        place = {key: self.platform[key] for key in ("project", "region", "zone")}
        write_settings(self.cloud_folder, Settings.model_validate({**place, "default_network": False, **settings}))
        plane.hand_out(self.cloud_folder)
        plugins = folder / "plugins"
        plugins.mkdir()
        script(plugins / "pulumi-resource-gcp", f"{shlex.quote(sys.executable)} -m tests.rig.gcp")
        plane.write_login_plugin(plugins)
        self.environment |= {
            "PATH": f"{plugins}:{kubernetes_provider()}:{self.environment['PATH']}",
            "TPU_RAY_RIG_CLOUD": str(self.cloud_folder),
        }

    def with_config(self, config: Mapping[str, Any]) -> "GkeCheckout":
        """The same stack with another file."""
        self.config = self.settings["config"] = deepcopy(dict(config))
        self.write()
        return self

    @property
    def platform(self) -> dict[str, Any]:
        """What the file says of the platform; `write` after an edit."""
        found: dict[str, Any] = self.config["tpu-ray:platform"]
        return found

    @property
    def cloud(self) -> Cloud:
        """What Google has now."""
        return Cloud(self.cloud_folder)

    def things(self, token: str) -> dict[str, Thing]:
        """Everything of one type that Google has, by id."""
        with self.cloud.held.change() as things:
            return things.every(token)

    @property
    def cluster_id(self) -> str:
        """Id of the only cluster."""
        (found,) = self.things(CLUSTER)
        return found

    def operate(self, operation: Operation) -> Outcome:
        """The same as `tpu-ray <operation>`, in this process."""
        before = {name: os.environ.get(name) for name in PASSED_ON}
        os.environ.update({name: self.environment[name] for name in PASSED_ON})
        try:
            return operate(find_project(self.root), self.stack, operation, print)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def script(file: Path, command: str) -> None:
    """An executable that is a command of the project's tests, wherever it is started."""
    file.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {command} "$@"\n')
    file.chmod(0o755)


WORKLOADS = (
    *("RayService ", "RayJob ", "Ready ", "JobFinished ", "RunSettings ", "ScheduledJob ", "CronJob "),
    *("NetworkPolicy ", "DisruptionBudget ", "PodDisruptionBudget ", "PriorityClass ", "ServicesPriority "),
)
"""What runs on the slices, and what stands around it."""


def steps(outcome: Outcome, workloads: bool = False) -> list[tuple[str, str]]:
    """What an operation did or would do, (operation, resource), in the engine's order; what stays is left out.

    What runs on the slices only with `workloads`: it follows every change of them.
    """
    return [
        (step["op"], step["resource"])
        for step in outcome.steps
        if step["op"] not in ("same", "read", "refresh") and (workloads or not step["resource"].startswith(WORKLOADS))
    ]
