"""The real Pulumi engine over the local platform, with stand-ins for the workloads only."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from pulumi import automation

from infra.platforms.local import deploy
from infra.platforms.local.deploy import Application
from infra.platforms.local.folders import Folders, project_folder
from infra.platforms.local.ports import pick
from infra.pulumi_cli import find_cli
from infra.stack import StackSpec, parse_stack
from workloads.spec import JobLaunch, ServiceLaunch

EXPORT = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
runs = folder.parent / "runs"
runs.write_text((runs.read_text() if runs.exists() else "") + "x")
if sys.argv[2] == "fail":
    sys.exit("the loss is not a number")
(folder / "export.json").write_text(json.dumps({"step": int(sys.argv[2])}))
"""


def null_application(launch: ServiceLaunch) -> dict[str, object]:
    """Like `serve_application`, for the application without a model. `package:attr_NAME` names what to import."""
    name = launch.model.removeprefix("package:attr_") if launch.model.startswith("package:attr_") else "build"
    return {
        "name": launch.service.name,
        "route_prefix": f"/{launch.service.name}",
        "import_path": f"tests.local.nullapp:{name}",
        "runtime_env": {"env_vars": {"PYTHONPATH": str(project_folder())}},
        "args": launch.model_dump(mode="json"),
    }


def export_command(launch: JobLaunch) -> str:
    """A job that exports at once; one of 13 steps fails."""
    result = "fail" if launch.job.steps == 13 else str(launch.job.steps)
    return shlex.join([sys.executable, "-c", EXPORT, launch.export_dir, result])


class Engine:
    """One stack in its own backend and state folder."""

    def __init__(self, folder: Path, stack: str = "t", application_of: Application = null_application) -> None:
        self._application_of = application_of
        cli, refused = find_cli()
        assert cli is not None, f"no Pulumi CLI: {refused}; `make setup` gets one"
        self.stack_name, self.folders = stack, Folders.of(stack)
        self.http_port, self.dashboard_port = pick(2)
        self.config: dict[str, Any] = {}
        self.spec: StackSpec | None = None
        (folder / "backend").mkdir()
        self.log = folder / "engine.log"
        self._stack = automation.create_or_select_stack(
            stack_name=stack,
            project_name="tpu-ray",
            program=self._program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                pulumi_home=str(folder / "pulumi-home"),
                env_vars={
                    "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
                    "PULUMI_CONFIG_PASSPHRASE": "test",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "PULUMI_PYTHON_CMD": sys.executable,
                    "PATH": f"{cli.bin_dir}:{os.environ['PATH']}",
                },
                pulumi_command=automation.PulumiCommand(str(cli.bin_dir.parent)) if cli.bin_dir.name == "bin" else None,
            ),
        )

    def declare(self, pools: list[Any], services: list[Any] = [], jobs: list[Any] = [], **platform: Any) -> None:  # noqa: B006
        """Set what the stack file would say."""
        ports = {"http_port": self.http_port, "dashboard_port": self.dashboard_port}
        self.spec = parse_stack(
            {
                "tpu-ray:platform": {"kind": "local", **ports, **platform},
                "tpu-ray:pools": pools,
                "tpu-ray:services": services,
                "tpu-ray:jobs": jobs,
            }
        )

    def _program(self) -> None:
        assert self.spec is not None
        deploy(self.stack_name, self.spec, self._application_of, export_command)

    def _write(self, line: str) -> None:
        with self.log.open("a") as file:
            file.write(line + "\n")

    def up(self) -> dict[str, int]:
        """How many resources met which fate: `create`, `update`, `same` ..."""
        return _counts(self._stack.up(on_output=self._write).summary.resource_changes)

    def preview(self) -> dict[str, int]:
        return _counts(self._stack.preview(on_output=self._write).change_summary)

    def refresh(self) -> dict[str, int]:
        return _counts(self._stack.refresh(on_output=self._write).summary.resource_changes)

    def destroy(self) -> None:
        self._stack.destroy(on_output=self._write)

    def outputs(self) -> dict[str, Any]:
        return {name: output.value for name, output in self._stack.outputs().items()}

    def get(self, path: str) -> Any:
        with httpx.Client(trust_env=False, timeout=10) as client:
            answer = client.get(f"http://127.0.0.1:{self.http_port}{path}")
            answer.raise_for_status()
            return json.loads(answer.text)


def _counts(changes: Mapping[Any, int] | None) -> dict[str, int]:
    return {str(getattr(operation, "value", operation)): count for operation, count in (changes or {}).items()}
