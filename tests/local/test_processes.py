"""Processes are ended by recorded identity, never by number alone."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from infra.platforms.local.processes import MARKER, Identity, end, identify, members

SLEEP = "import time; time.sleep(600)"
DOUBLE = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True)
print(child.pid, flush=True)
import time; time.sleep(600)
"""


def start(code: str, session: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code],
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, MARKER: session},
    )


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[str]"]:
    process = start(SLEEP, "another-session")
    yield process
    process.kill()
    process.communicate()


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_running_process_is_alive_and_an_ended_one_is_not() -> None:
    process = start(SLEEP, "s")
    identity = identify(process.pid)
    assert identity.alive()
    process.kill()
    process.communicate()
    assert not identity.alive()


def test_a_zombie_is_not_alive() -> None:
    process = start("", "s")
    identity = identify(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.alive()
    process.communicate()


def test_a_recycled_number_is_left_alone(stranger: "subprocess.Popen[str]") -> None:
    real = identify(stranger.pid)
    recorded = Identity(stranger.pid, real.start_ticks - 500, real.boot_id)
    before_boot = Identity(stranger.pid, real.start_ticks, "another boot")
    assert not recorded.alive()
    assert end([recorded, before_boot], "ours", grace_s=0.1, deadline_s=5) == []
    assert stranger.poll() is None


def test_a_child_in_a_session_of_its_own_is_ended_too() -> None:
    session = secrets.token_hex(8)
    with start(DOUBLE, session) as leader:
        assert leader.stdout is not None
        child = int(leader.stdout.readline())
        identity = identify(leader.pid)
        assert {process.pid for process in members([identity], session)} == {leader.pid, child}
        assert end([identity], session, grace_s=0.5, deadline_s=10) == []
    assert gone(child)


def test_an_orphan_is_found_by_the_sessions_mark(stranger: "subprocess.Popen[str]") -> None:
    session = secrets.token_hex(8)
    with start(DOUBLE, session) as leader:
        assert leader.stdout is not None
        child = int(leader.stdout.readline())
        identity = identify(leader.pid)
        leader.kill()
    assert [process.pid for process in members([identity], session)] == [child]
    assert end([identity], session, grace_s=0.1, deadline_s=10) == []
    assert gone(child)
    assert stranger.poll() is None
