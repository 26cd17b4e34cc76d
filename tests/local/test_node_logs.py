"""Why a host did not come up, from the files that it left."""

from pathlib import Path

from infra.platforms.local.folders import Folders
from infra.platforms.local.node_logs import why
from infra.platforms.local.nodes import loopback, node_temp
from infra.platforms.local.processes import Identity
from infra.platforms.local.state import Node

RAYLET = """\
[2026-12-02 04:22:45,000 I 31040 31065] (raylet) main.cc:100: starting
[2026-12-02 04:22:46,934 C 31040 31065] (raylet) agent_manager.cc:87: Timed out waiting for file metrics_agent_port
- The agent is killed by the OS (e.g., out of memory).
*** StackTrace Information ***
"""


class RayFolders(Folders):
    """Those of a stack whose Ray keeps its files beside the others."""

    @property
    def ray_temp(self) -> Path:
        return self.root / "ray"


def left_by(folder: Path, raylet: str | None) -> tuple[Folders, Node]:
    """The files of host `quad-0.1`, which was node 300 of its cluster."""
    folders = RayFolders("dev", folder)
    folders.logs.mkdir()
    (folders.logs / "quad-0.1.log").write_text("Some Ray subprocesses exited unexpectedly: raylet\n")
    if raylet is not None:
        logs = node_temp(folders, 300) / "session_latest" / "logs"
        logs.mkdir(parents=True)
        (logs / "raylet.err").write_text(raylet)
    return folders, Node("quad-0.1", Identity(1, 0, "boot"), loopback(folders.digest, 300))


def test_the_raylets_own_errors_are_quoted(tmp_path: Path) -> None:
    assert why(*left_by(tmp_path, RAYLET)).splitlines() == [
        "end of quad-0.1.log:",
        "    Some Ray subprocesses exited unexpectedly: raylet",
        "    last errors of its raylet:",
        "    [2026-12-02 04:22:46,934 C 31040 31065] (raylet) agent_manager.cc:87: "
        "Timed out waiting for file metrics_agent_port",
    ]


def test_a_raylet_that_said_nothing_is_not_mentioned(tmp_path: Path) -> None:
    folders, node = left_by(tmp_path, None)
    assert "raylet:" not in why(folders, node)
    (tmp_path / "logs" / "quad-0.1.log").unlink()
    assert why(folders, node) == f"no log {tmp_path}/logs/quad-0.1.log"
