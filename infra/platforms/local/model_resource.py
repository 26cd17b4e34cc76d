"""Pulumi resource of a hub's model on this machine: downloaded once, for all stacks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.plan.workloads import STAGE_MODULE
from infra.platforms.dynamic import differs, reports_plainly, say
from infra.platforms.errors import PlatformError
from infra.platforms.local.folders import home
from workloads.spec.hub import MARKER

TIMEOUT_S = 6 * 3600


def models_folder() -> Path:
    """Where models of the hub lie. Not in a stack's own folder: a model is the same for all of them."""
    return home() / "models"


class ModelStagedProvider(ResourceProvider):
    """Downloads the model where it is not there whole. `delete` leaves it: other stacks may read it."""

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=differs(olds, news, "model", "folder") or not _is_there(news))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        _stage(props)
        return CreateResult(props["folder"], props)

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        _stage(news)
        return UpdateResult(news)

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props) if _is_there(props) else ReadResult("", {})


def _is_there(props: dict[str, Any]) -> bool:
    folder = Path(props["folder"])
    try:
        files = json.loads((folder / MARKER).read_text())["files"]
        return all((folder / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _stage(props: dict[str, Any]) -> None:
    command = [sys.executable, "-m", STAGE_MODULE, props["model"], props["folder"], str(TIMEOUT_S)]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            last = line.strip() or last
            say(last)
    if running.returncode:
        raise PlatformError(last.removeprefix("error: ") or f"{STAGE_MODULE} ended with {running.returncode}")


class ModelStaged(Resource, module="local", name="ModelStaged"):
    """A model of the hub in a folder of this machine."""

    def __init__(self, name: str, *, model: str, folder: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(ModelStagedProvider(), name, {"model": model, "folder": folder}, opts)
