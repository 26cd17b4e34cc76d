"""A lock is taken away only when its holder ran here and is gone."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from infra.automation.stale_lock import release_stale_locks


def locked(backend: Path, content: str) -> Path:
    folder = backend / ".pulumi" / "locks" / "organization" / "tpu-ray" / "local"
    folder.mkdir(parents=True)
    (folder / "one.json.attrs").write_text("{}")
    (folder / "one.json").write_text(content)
    return folder / "one.json"


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_lock_of_a_process_that_is_gone_is_taken_away_and_said(tmp_path: Path) -> None:
    lock = locked(tmp_path, json.dumps({"pid": ended_process(), "hostname": socket.gethostname()}))
    said: list[str] = []
    release_stale_locks(tmp_path, "tpu-ray", "local", said.append)
    assert not list(lock.parent.iterdir())
    assert "its lock is taken away" in said[0]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"pid": os.getpid(), "hostname": socket.gethostname()}),
        json.dumps({"pid": 2**22, "hostname": "another-host"}),
        "half a lo",
        "[]",
    ],
    ids=["holder lives", "another host", "not JSON", "not a lock"],
)
def test_every_other_lock_stays(tmp_path: Path, content: str) -> None:
    lock = locked(tmp_path, content)
    release_stale_locks(tmp_path, "tpu-ray", "local", lambda line: pytest.fail(line))
    assert lock.read_text() == content
