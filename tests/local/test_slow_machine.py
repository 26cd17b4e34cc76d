"""A head that Ray itself gives up on a busy machine, with processes that only sleep in place of Ray's."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local import cluster, room
from infra.platforms.local.ports import pick
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.spec import ClusterSpec, LocalPool
from workloads.spec import resolve_slice

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
GIVEN_UP = "Exception: The current node timed out during startup. This could happen because"


def ends(text: str, after_s: float = 0) -> list[str]:
    return [sys.executable, "-c", f"import time; time.sleep({after_s}); raise SystemExit({text!r})"]


def heads(monkeypatch: pytest.MonkeyPatch, *commands: list[str]) -> list[list[str]]:
    """The head's process is the next of these each time; those that were started."""
    started: list[list[str]] = []

    def command(*_: object) -> list[str]:
        started.append(commands[min(len(started), len(commands) - 1)])
        return started[-1]

    monkeypatch.setattr(cluster, "head_command", command)
    return started


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cluster, "host_command", lambda *_: SLEEP)
    monkeypatch.setattr(room, "require_memory", lambda *_: None)
    yield
    cluster.stop("t", print)


def spec() -> ClusterSpec:
    http_port, dashboard_port = pick(2)
    return ClusterSpec("t", http_port, dashboard_port, 16, (LocalPool("single", resolve_slice("v6e", "1x1"), 1),))


def test_a_head_that_ray_gave_up_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    started = heads(monkeypatch, ends(GIVEN_UP), SLEEP)
    monkeypatch.setattr(Dashboard, "answers", lambda _: len(started) > 1)
    monkeypatch.setattr(cluster, "alive_addresses", lambda _: set())
    monkeypatch.setattr(cluster, "_wait_for_nodes", lambda *_: None)
    said: list[str] = []
    state = cluster.start(spec(), said.append)
    assert len(started) == 2
    assert state.dead_roles() == ()
    assert said.count("the machine is busy: a head that Ray gave up is started again") == 1


def test_hosts_are_not_waited_for_when_their_head_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is the reason, not that the hosts are late."""
    started = heads(monkeypatch, ends(GIVEN_UP, after_s=1), ends("out of memory", after_s=1))
    monkeypatch.setattr(Dashboard, "answers", lambda _: True)
    monkeypatch.setattr(cluster, "alive_addresses", lambda _: set())
    with pytest.raises(PlatformError) as error:
        cluster.start(spec(), print)
    assert len(started) == 2
    assert "head of stack t ended while it started" in str(error.value)
    assert "out of memory" in error.value.found


def test_a_head_that_ends_for_another_reason_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = heads(monkeypatch, ends("no such option"))
    monkeypatch.setattr(Dashboard, "answers", lambda _: False)
    with pytest.raises(PlatformError, match="no such option"):
        cluster.start(spec(), print)
    assert len(started) == 1
