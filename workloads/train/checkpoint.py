"""Checkpoints: saved by all processes into one folder, complete only once a manifest of every file lies in it.

Orbax's own listing takes a folder that lost its commit marker for a checkpoint, so completeness is checked here, file
by file, and the newest complete one is restored into whatever mesh the run has now.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import jax
import orbax.checkpoint as ocp  # type: ignore[import-untyped]
from etils import epath  # type: ignore[import-untyped]
from jax.experimental import multihost_utils

from workloads.whole_file import write_whole

MANIFEST = "complete.json"
ORBAX_MARKER = "_CHECKPOINT_METADATA"


def step_folder(folder: epath.Path, steps: int) -> epath.Path:
    """Where the state after `steps` steps lies."""
    return folder / f"{steps:08d}"


def why_incomplete(path: epath.Path) -> str | None:
    """What is missing from a checkpoint, or None when it is whole."""
    marker = path / MANIFEST
    if not marker.exists():
        return f"no {MANIFEST}"
    try:
        manifest = json.loads(marker.read_text())
    except json.JSONDecodeError:
        return f"{MANIFEST} is cut off"
    if manifest["steps"] != int(path.name):
        return f"{MANIFEST} is of step {manifest['steps']}"
    if not (path / ORBAX_MARKER).exists():
        return f"no {ORBAX_MARKER}"
    for name, size in manifest["files"].items():
        file = path / name
        if not file.exists() or file.stat().length != size:
            return f"{name} is missing or cut off"
    return None


def newest_complete(folder: epath.Path, say: Callable[[str], None]) -> int | None:
    """The steps of the newest complete checkpoint, or None. Says which newer ones are skipped, and why."""
    for steps in sorted(_found(folder), reverse=True):
        reason = why_incomplete(step_folder(folder, steps))
        if reason is None:
            return steps
        say(f"checkpoint of step {steps} is incomplete ({reason}): skipped, it will be written again")
    return None


def save(folder: epath.Path, steps: int, state: Any, keep: int) -> epath.Path:
    """Save `state` as the checkpoint of `steps`, in the place of a half-written one. All processes call it together.

    Returns when every process has written its part and the manifest is there; then the oldest are pruned, so that
    `keep` complete ones stay.
    """
    path = step_folder(folder, steps)
    if jax.process_index() == 0 and path.exists():
        path.rmtree()
    multihost_utils.sync_global_devices(f"clear-{steps}")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, state)
        checkpointer.wait_until_finished()
    if jax.process_index() == 0:
        _write_manifest(path, steps)
        _prune(folder, steps, keep)
    multihost_utils.sync_global_devices(f"saved-{steps}")
    return path


def restore(folder: epath.Path, steps: int, like: Any) -> Any:
    """The state after `steps`, in the shapes and shardings of `like` (a tree of jax.ShapeDtypeStruct)."""
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(step_folder(folder, steps), like)


def _found(folder: epath.Path) -> list[int]:
    if not folder.exists():
        return []
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def _prune(folder: epath.Path, steps: int, keep: int) -> None:
    """Remove all up to `steps` but the newest `keep` complete ones."""
    past = sorted((found for found in _found(folder) if found <= steps), reverse=True)
    kept = [found for found in past if why_incomplete(step_folder(folder, found)) is None][:keep]
    for found in past:
        if found not in kept:
            step_folder(folder, found).rmtree()


def _files(folder: epath.Path) -> Iterator[epath.Path]:
    """Every file below a folder."""
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _write_manifest(path: epath.Path, steps: int) -> None:
    files = {str(file.relative_to(path)): file.stat().length for file in _files(path)}
    write_whole(path / MANIFEST, json.dumps({"steps": steps, "files": files}))
