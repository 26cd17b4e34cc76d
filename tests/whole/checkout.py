"""A user's checkout in a folder of its own, with the default stack on free ports, driven by the real commands."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from infra.platforms.local.folders import Folders
from infra.platforms.local.ports import pick
from infra.pulumi_cli import find_cli

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
DEADLINE_S = 1800


class Checkout:
    """Commands run in it as a user types them; nobody is logged in, and all state is below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        (self.root / "stacks").mkdir(parents=True)
        (self.root / "infra").mkdir()
        (self.root / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
        (self.root / "infra" / "__main__.py").write_text((ROOT / "infra" / "__main__.py").read_text())
        (self.root / ".venv").symlink_to(sys.prefix)
        (self.root / "infra" / ".venv").symlink_to("../.venv")
        self.stack_file = self.root / "stacks" / "Pulumi.local.yaml"
        self.settings: dict[str, Any] = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())
        self.config: dict[str, Any] = self.settings["config"]
        self.http_port, self.dashboard_port = pick(2)
        self.config["tpu-ray:platform"] = {
            "kind": "local",
            "http_port": self.http_port,
            "dashboard_port": self.dashboard_port,
        }
        self.write()
        cli, refused = find_cli()
        assert cli is not None, f"no Pulumi CLI: {refused}; `make setup` gets one"
        self.home = folder / "home"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "TPU_RAY_HOME", "XDG_STATE"))},
            "XDG_STATE_HOME": str(folder / "state"),
            "PULUMI_HOME": str(folder / "pulumi-home"),
            "TPU_RAY_HOME": str(self.home),
            "PATH": f"{BIN}:{cli.bin_dir}:{os.environ['PATH']}",
        }

    def write(self) -> None:
        """Put `config` into the stack file."""
        self.stack_file.write_text(yaml.safe_dump(self.settings, sort_keys=False))

    def run(self, command: str, expect: int = 0) -> str:
        """Standard output of a shell command in the checkout; anything but exit code `expect` fails the test."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == expect, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def tpu_ray(self, arguments: str, expect: int = 0) -> dict[str, Any]:
        """The JSON result of a `tpu-ray` command on the local stack."""
        result: dict[str, Any] = json.loads(self.run(f"tpu-ray {arguments} -s local --json", expect))
        return result

    def plain_pulumi(self, command: str) -> str:
        """A plain `pulumi` command on the stack, as `tpu-ray env` sets the shell up for it."""
        return self.run(
            f'eval "$(tpu-ray env -s local)" && pulumi {command} -s local --config-file "$TPU_RAY_STACK_FILE" '
            "--non-interactive"
        )

    def url(self, service: str) -> str:
        """Base of a service's OpenAI routes."""
        return f"http://127.0.0.1:{self.http_port}/{service}/v1"

    @property
    def storage(self) -> Path:
        """Where the jobs of the stack write."""
        return Folders("local", self.home / "local" / "local").storage

    @property
    def ray_temp(self) -> Path:
        """Ray's folder of the stack."""
        return Folders("local", self.home / "local" / "local").ray_temp
