"""A cluster that is changed in place, with processes that only sleep in place of Ray's."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local import cluster, cluster_resource, room
from infra.platforms.local.cluster_resource import LocalClusterProvider
from infra.platforms.local.folders import Folders, project_folder
from infra.platforms.local.ports import pick, require_free
from infra.platforms.local.processes import MARKER, identify, members
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.spec import ClusterSpec, LocalPool
from infra.platforms.local.state import ClusterState, load, save
from workloads.spec import resolve_slice

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
ONE, FOUR = resolve_slice("v6e", "1x1"), resolve_slice("v6e", "2x2")
SIDE = LocalPool("side", ONE, 1)


def silent(_line: str) -> None:
    return


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of its own, nodes that sleep, and a machine with memory for all of them."""
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cluster, "head_command", lambda *_: SLEEP)
    monkeypatch.setattr(cluster, "host_command", lambda *_: SLEEP)
    monkeypatch.setattr(cluster, "_wait_for_nodes", lambda *_: None)
    monkeypatch.setattr(cluster, "alive_addresses", lambda _: set())
    monkeypatch.setattr(Dashboard, "answers", lambda _: True)
    monkeypatch.setattr(room, "require_memory", lambda *_: None)
    yield tmp_path / "home"
    cluster.stop("t", silent)


def spec(*pools: LocalPool) -> ClusterSpec:
    http_port, dashboard_port = pick(2)
    return ClusterSpec("t", http_port, dashboard_port, 16, (LocalPool("single", ONE, 1), *pools))


def pids(state: ClusterState) -> dict[str, int]:
    return {node.role: node.identity.pid for node in state.nodes}


def fails(*_: object) -> None:
    raise PlatformError("the cluster is too slow")


def test_a_host_that_ray_found_too_slow_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray gives a node 30 s to come up, also on a machine that has much else to do."""
    ended: list[int] = []

    def gives_up_once(state: ClusterState, *_: object) -> None:
        if not ended:
            host = psutil.Process(state.node("single-0.0").identity.pid)
            host.kill()
            host.wait()
            ended.append(host.pid)
            raise PlatformError(
                "ended", found="Exception: The current node timed out during startup. This could happen"
            )

    monkeypatch.setattr(cluster, "_wait_for_nodes", gives_up_once)
    said: list[str] = []
    state = cluster.start(spec(), said.append)
    assert [line for line in said if "started again" in line]
    assert state.node("single-0.0").identity.pid not in ended
    assert cluster.status("t").alive


def test_only_slices_of_the_same_pool_and_shape_stay() -> None:
    before = spec(LocalPool("side", ONE, 3), LocalPool("other", FOUR, 1), LocalPool("goes", ONE, 1))
    after = replace(before, pools=(LocalPool("new", ONE, 1), LocalPool("other", ONE, 1), LocalPool("side", ONE, 2)))
    assert before.kept_in(after).pools == (LocalPool("side", ONE, 2),)
    assert before.kept_in(before) == before


def test_a_pool_of_another_shape_gets_other_hosts_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec(SIDE)
    before_state = cluster.start(before, silent)
    old = pids(before_state)
    addresses = {node.address for node in before_state.nodes}
    # Ray still counts the host that was just ended.
    monkeypatch.setattr(cluster, "alive_addresses", lambda _: addresses)
    state = cluster.start(replace(before, pools=(*before.pools[:1], LocalPool("side", FOUR, 1))), silent)
    new = pids(state)
    assert state.node("side-0.0").address not in addresses
    assert new.keys() == old.keys() == {"head", "single-0.0", "side-0.0"}
    assert (new["head"], new["single-0.0"]) == (old["head"], old["single-0.0"])
    assert new["side-0.0"] != old["side-0.0"]
    assert old["side-0.0"] not in {process.pid for process in members(state.identities, state.session)}


@pytest.mark.parametrize("port", ["http_port", "dashboard_port"])
def test_a_port_that_is_taken_is_refused_while_the_old_cluster_lives(port: str, taken: int) -> None:
    before = spec()
    state = cluster.start(before, silent)
    other = replace(before, http_port=taken) if port == "http_port" else replace(before, dashboard_port=taken)
    with pytest.raises(PlatformError) as error:
        cluster.start(other, silent)
    assert error.value.key == f"tpu-ray:platform.{port}"
    assert load(Folders.of("t")) == state
    assert cluster.status("t").alive


def test_memory_that_is_short_is_refused_while_the_old_cluster_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec()
    state = cluster.start(before, silent)
    monkeypatch.setattr(room, "require_memory", fails)
    for other in (replace(before, http_port=pick(1)[0]), replace(before, pools=())):
        with pytest.raises(PlatformError):
            cluster.start(other, silent)
    assert load(Folders.of("t")) == state
    assert cluster.status("t").alive


def test_what_is_refused_has_ended_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec(SIDE)
    state = cluster.start(before, silent)
    ended: list[ClusterSpec] = []
    monkeypatch.setattr(cluster_resource, "leave_pools", lambda spec, _: ended.append(spec))
    monkeypatch.setattr(room, "require_memory", fails)
    olds = {"spec": before.to_json(), "session": state.session}
    after = replace(before, pools=before.pools[:1])
    with pytest.raises(PlatformError):
        LocalClusterProvider().update("t", olds, {**olds, "spec": after.to_json()})
    assert ended == []
    monkeypatch.setattr(room, "require_memory", lambda *_: None)
    LocalClusterProvider().update("t", olds, {**olds, "spec": after.to_json()})
    assert ended == [after]


def test_a_port_of_our_own_counts_as_free() -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True);"
        "import time; time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with pytest.raises(PlatformError):
            require_free(port, "key")
        require_free(port, "key", members([identify(process.pid)], "none"))
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(lambda pools: (*pools, LocalPool("new", ONE, 2)), {"single-0.0", "side-0.0"}, id="one-more"),
        pytest.param(lambda pools: (pools[0], LocalPool("new", ONE, 1)), {"single-0.0"}, id="another"),
        pytest.param(lambda pools: (pools[0], LocalPool("side", FOUR, 1)), {"single-0.0"}, id="another-shape"),
    ],
)
def test_hosts_that_do_not_come_up_leave_the_cluster_alive(
    monkeypatch: pytest.MonkeyPatch, change: Callable[..., tuple[LocalPool, ...]], left: set[str]
) -> None:
    before = spec(SIDE)
    old = cluster.start(before, silent)
    after = replace(before, pools=change(before.pools))
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "_wait_for_nodes", fails)
        with pytest.raises(PlatformError):
            cluster.start(after, silent, old.session)
    now = cluster.status("t")
    assert now.alive
    assert now.state is not None
    assert now.state.session == old.session
    assert {host.role for host in now.state.spec.hosts} == left
    assert pids(now.state) == {role: pid for role, pid in pids(old).items() if role in {"head", *left}}
    ours = {process.pid for process in members(now.state.identities, old.session)}
    assert ours == set(pids(now.state).values()), "nothing of the new hosts is left"
    # Also where the stack file is as Pulumi last knew it, the next `up` brings back what was ended.
    props = {"spec": before.to_json(), "session": old.session}
    assert LocalClusterProvider().diff("t", props, props).changes == (left != {"single-0.0", "side-0.0"})
    assert cluster.start(after, silent, old.session).session == old.session


def test_a_new_life_whose_hosts_do_not_come_up_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    before = spec(SIDE)
    old = cluster.start(before, silent)
    monkeypatch.setattr(cluster, "_wait_for_nodes", fails)
    with pytest.raises(PlatformError):
        cluster.start(before, silent, "another")
    state = load(Folders.of("t"))
    assert state is not None
    assert state.nodes == ()
    assert not members(old.identities, old.session)
    assert not members((), "another")


def test_what_a_killed_first_up_left_is_ended_by_stop() -> None:
    """A node may have started whose number was not written down any more: it carries the session's marker."""
    save(Folders.of("t"), ClusterState(str(project_folder()), "killed", spec(), "127.64.0.1:1", ()))
    process = subprocess.Popen(SLEEP, start_new_session=True, env={MARKER: "killed"})
    try:
        assert cluster.stop("t", silent) is True
        assert not members((), "killed")
        assert cluster.stop("t", silent) is False
    finally:
        process.kill()
        process.wait()
