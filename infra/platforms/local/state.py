"""What is written down about a running cluster, so that any later command finds exactly its own processes."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from infra.platforms.errors import PlatformError
from infra.platforms.local.folders import Folders, project_folder
from infra.platforms.local.processes import Identity
from infra.platforms.local.spec import ClusterSpec


@dataclass(frozen=True)
class Node:
    """One `ray start` process. `role` is `head` or the host's role."""

    role: str
    identity: Identity
    address: str


@dataclass(frozen=True)
class ClusterState:
    """The content of state.json."""

    owner: str
    session: str
    spec: ClusterSpec
    gcs_address: str
    nodes: tuple[Node, ...]

    @property
    def dashboard(self) -> str:
        return f"http://127.0.0.1:{self.spec.dashboard_port}"

    @property
    def identities(self) -> tuple[Identity, ...]:
        return tuple(node.identity for node in self.nodes)

    def node(self, role: str) -> Node:
        """The started node of that role."""
        return next(node for node in self.nodes if node.role == role)

    def dead_roles(self) -> tuple[str, ...]:
        """Nodes whose process is gone, and those that were never started."""
        alive = {node.role for node in self.nodes if node.identity.alive()}
        return tuple(role for role in ("head", *(host.role for host in self.spec.hosts)) if role not in alive)


def load(folders: Folders) -> ClusterState | None:
    """The recorded state, None where the stack has no cluster.

    Raises:
        PlatformError: the file cannot be read, or belongs to another checkout.
    """
    try:
        raw = json.loads(folders.state_file.read_text())
        nodes = tuple(Node(n["role"], Identity(**n["identity"]), n["address"]) for n in raw["nodes"])
        spec = ClusterSpec.from_json(json.dumps(raw["spec"]))
        state = ClusterState(raw["owner"], raw["session"], spec, raw["gcs_address"], nodes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlatformError(
            f"the state of stack `{folders.stack}` cannot be read",
            wanted="a state.json that this version wrote",
            found=f"{folders.state_file}: {error}",
            next_step=f"end its processes by hand and remove {folders.root}",
        ) from error
    if Path(state.owner) != project_folder():
        raise PlatformError(
            f"the local stack `{folders.stack}` belongs to another checkout",
            wanted=f"a stack of {project_folder()}",
            found=f"one of {state.owner}, kept in {folders.root}",
            next_step="destroy it there, or use another stack name, or set TPU_RAY_HOME to another folder",
        )
    return state


def save(folders: Folders, state: ClusterState) -> None:
    raw = {
        "owner": state.owner,
        "session": state.session,
        "spec": json.loads(state.spec.to_json()),
        "gcs_address": state.gcs_address,
        "nodes": [asdict(node) for node in state.nodes],
    }
    write_atomically(folders.state_file, json.dumps(raw, indent=1))


def write_atomically(path: Path, text: str) -> None:
    """Write a file that only its user may read; a reader sees the old or the new content."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    part.replace(path)


@contextmanager
def locked(folders: Folders, timeout_s: float = 120) -> Iterator[None]:
    """Hold the stack's lock, so that one command at a time changes its cluster.

    Raises:
        PlatformError: another command held it for `timeout_s`.
    """
    until = time.monotonic() + timeout_s
    while True:
        folders.lock_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folders.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _take(handle) and _still_there(handle, folders.lock_file):
            break
        os.close(handle)
        if time.monotonic() > until:
            raise PlatformError(
                f"another command is changing the local stack `{folders.stack}`",
                wanted=f"the lock {folders.lock_file}",
                found=f"it was held for {timeout_s:.0f} s",
                next_step="wait until the other `up`, `destroy` or `local` command has ended, then try again",
            )
        time.sleep(0.1)
    try:
        yield
    finally:
        if not folders.root.exists():
            folders.lock_file.unlink(missing_ok=True)
            _remove_if_empty(folders.root.parent, folders.root.parent.parent)
        os.close(handle)


def _remove_if_empty(*places: Path) -> None:
    for place in places:
        try:
            place.rmdir()
        except OSError:
            return


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_there(handle: int, path: Path) -> bool:
    """Whether the file that was locked is still the one at the path: its last holder may have removed it."""
    try:
        return os.fstat(handle).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False
