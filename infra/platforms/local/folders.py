"""Where a stack's cluster keeps its files."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import infra


def project_folder() -> Path:
    """The checkout this code runs from: the owner of the stacks that it starts."""
    return Path(infra.__file__).resolve().parent.parent


def home() -> Path:
    """`$TPU_RAY_HOME`, else `~/.local/state/tpu-ray`."""
    chosen = os.environ.get("TPU_RAY_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path.home() / ".local" / "state" / "tpu-ray"


@dataclass(frozen=True)
class Folders:
    """The files of one stack. Nothing of it lies anywhere else."""

    stack: str
    root: Path

    @classmethod
    def of(cls, stack: str) -> "Folders":
        return cls(stack, home() / "local" / stack)

    @property
    def state_file(self) -> Path:
        return self.root / "state.json"

    @property
    def applications_file(self) -> Path:
        return self.root / "applications.json"

    @property
    def token_file(self) -> Path:
        return self.root / "token"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def storage(self) -> Path:
        """Checkpoints and exported models of the stack's jobs."""
        return self.root / "storage"

    @property
    def lock_file(self) -> Path:
        """Beside the folder, not in it: it is held while the folder is removed."""
        return self.root.with_name(f".{self.stack}.lock")

    @property
    def digest(self) -> int:
        """A number that differs between stacks, also between those of two state folders."""
        return int.from_bytes(hashlib.sha256(str(self.root).encode()).digest()[:4], "big")

    @property
    def ray_temp(self) -> Path:
        """Ray's own folder. Short, because the sockets in it may have paths of 107 bytes at most."""
        return Path(f"/tmp/tpu-ray-{self.digest:08x}")
