"""A user's checkout in a folder of its own, in which commands run as a user types them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from infra.pulumi_cli import find_cli

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DEADLINE_S = 1800


class Checkout:
    """Nobody is logged in, and all state is below `folder`. The stack file is the project's; `write` after an edit."""

    def __init__(self, folder: Path, stack: str) -> None:
        self.stack = stack
        self.root = folder / "checkout"
        (self.root / "stacks").mkdir(parents=True)
        (self.root / "infra").mkdir()
        (self.root / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
        (self.root / "infra" / "__main__.py").write_text((ROOT / "infra" / "__main__.py").read_text())
        (self.root / ".venv").symlink_to(sys.prefix)
        (self.root / "infra" / ".venv").symlink_to("../.venv")
        self.stack_file = self.root / "stacks" / f"Pulumi.{stack}.yaml"
        self.settings: dict[str, Any] = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())
        self.config: dict[str, Any] = self.settings["config"]
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
        self.write()

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
        """The JSON result of a `tpu-ray` command on the stack."""
        result: dict[str, Any] = json.loads(self.run(f"tpu-ray {arguments} -s {self.stack} --json", expect))
        return result

    def plain_pulumi(self, command: str) -> str:
        """A plain `pulumi` command on the stack, as `tpu-ray env` sets the shell up for it."""
        return self.run(
            f'eval "$(tpu-ray env -s {self.stack})" && pulumi {command} -s {self.stack} '
            '--config-file "$TPU_RAY_STACK_FILE" --non-interactive'
        )
