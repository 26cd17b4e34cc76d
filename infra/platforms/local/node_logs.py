"""Why a node did not come up: the end of its log, and what its raylet complained of last."""

import re
from pathlib import Path

from infra.platforms.local.folders import Folders
from infra.platforms.local.nodes import node_temp, place_of
from infra.platforms.local.state import Node

RAYLET_ERROR = re.compile(r"^\[[\d-]+ [\d:,]+ [ECF] ")
"""An error, a failed check or a fatal line of Ray's C++ log; the lines after it are advice and addresses."""


def why(folders: Folders, node: Node) -> str:
    """For an error. `ray start` itself only says that its raylet ended; the raylet's own log says why."""
    text = tail(folders.logs / f"{node.role}.log")
    raylet = node_temp(folders, place_of(node.address)) / "session_latest" / "logs" / "raylet.err"
    try:
        complaints = [line for line in raylet.read_text(errors="replace").splitlines() if RAYLET_ERROR.match(line)]
    except OSError:
        return text
    return "\n    ".join([text, "last errors of its raylet:", *complaints[-3:]]) if complaints else text


def tail(path: Path, lines: int = 12) -> str:
    """The end of a log."""
    try:
        text = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return f"no log {path}"
    return "\n    ".join(["end of " + path.name + ":", *text[-lines:]])
