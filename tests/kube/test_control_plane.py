"""A control plane comes up, tells why when it does not, and leaves nothing."""

import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from infra.pulumi_cli.locate import cache_dir
from tests.rig.kube import control_plane as started
from tests.rig.kube.control_plane import ControlPlane, ControlPlaneError, control_plane, free_ports

DEADLINE_S = 120.0
TPU_TOLERATION = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}
"""https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration"""


def eventually(done: Callable[[], bool], what: str) -> None:
    """Wait until it is so."""
    until = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < until, f"{what}: not so after {DEADLINE_S:.0f} s"
        time.sleep(0.1)


def config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def pod(name: str, **resources: str) -> dict[str, object]:
    container = {"name": "one", "image": "example.org/none", "resources": {"requests": resources, "limits": resources}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def stand_in(folder: Path, script: str) -> Callable[[], Path]:
    """A binary that does what the shell script says."""
    file = folder / f"stand-in-{secrets.token_hex(4)}"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return lambda: file


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("plane") / "plane") as one:
        yield one


@pytest.mark.rig
def test_a_pod_with_chips_tolerates_the_taint_of_tpu_nodes(plane: ControlPlane) -> None:
    """As on GKE, whose TPU nodes are tainted `google.com/tpu`: the user writes no toleration."""
    with plane.client() as client:
        for name, resources in (("chips", {"google.com/tpu": "4"}), ("none", {"cpu": "1"})):
            client.post("/api/v1/namespaces/default/pods", json=pod(name, **resources)).raise_for_status()
    found = {one["metadata"]["name"]: one["spec"].get("tolerations", []) for one in plane.every("/api/v1/pods")}
    assert TPU_TOLERATION in found["chips"]
    assert not [one for one in found["none"] if one["key"] == "google.com/tpu"]


@pytest.mark.rig
def test_a_deleted_namespace_goes_with_everything_in_it(plane: ControlPlane) -> None:
    namespace = "/api/v1/namespaces/passing"
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "passing"}}).raise_for_status()
        client.post(f"{namespace}/configmaps", json=config_map("inside")).raise_for_status()
        client.delete(namespace).raise_for_status()
        eventually(lambda: client.get(namespace).status_code == 404, "the namespace is gone")
        assert client.get(f"{namespace}/configmaps/inside").status_code == 404


@pytest.mark.rig
def test_what_a_deleted_object_owns_goes_with_it(plane: ControlPlane) -> None:
    """Deleted in the foreground, as `pulumi destroy` does: the owner goes when what it owns is gone."""
    maps = "/api/v1/namespaces/default/configmaps"
    with plane.client() as client:
        owner = client.post(maps, json=config_map("owner")).raise_for_status().json()
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        client.post(maps, json=config_map("owned", ownerReferences=[reference])).raise_for_status()
        client.delete(f"{maps}/owner", params={"propagationPolicy": "Foreground"}).raise_for_status()
        eventually(lambda: client.get(f"{maps}/owner").status_code == 404, "the owner is gone")
        assert client.get(f"{maps}/owned").status_code == 404


@pytest.mark.rig
def test_only_who_has_the_token_gets_in(plane: ControlPlane) -> None:
    with plane.client() as client:
        client.headers["Authorization"] = "Bearer wrong"
        assert client.get("/api/v1/nodes").status_code == 401
        del client.headers["Authorization"]
        assert client.get("/api/v1/nodes").status_code == 403


@pytest.mark.rig
def test_two_at_once_do_not_disturb_each_other(plane: ControlPlane, tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/configmaps/only-here"
    with plane.client() as first:
        with control_plane(tmp_path / "second") as other, other.client() as second:
            assert other.url != plane.url
            second.post(path.rpartition("/")[0], json=config_map("only-here")).raise_for_status()
            assert second.get(path).status_code == 200
            assert first.get(path).status_code == 404
            second.headers["Authorization"] = first.headers["Authorization"]
            assert second.get(path).status_code == 401
        with pytest.raises(httpx.ConnectError):
            other.every("/api/v1/nodes")
        assert first.get("/readyz").status_code == 200


@pytest.mark.rig
def test_nothing_is_left_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, no open port, and no file outside its own folder."""
    elsewhere = {name: tmp_path / name.lower() for name in ("HOME", "TMPDIR", "CWD")}
    monkeypatch.setenv("TPU_RAY_CACHE", str(cache_dir()))
    for name, folder in elsewhere.items():
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(elsewhere["CWD"])
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    with control_plane(tmp_path / "plane") as plane:
        assert plane.every("/api/v1/namespaces")
        ran = [one for one in psutil.Process().children(recursive=True) if one.pid not in before]
        assert sorted(one.name() for one in ran) == ["etcd", "kube-apiserver", "kube-controller-manager"]
        ports = {one.laddr.port for process in ran for one in process.net_connections("tcp") if one.status == "LISTEN"}
        assert len(ports) == 3
    assert not any(one.is_running() for one in ran)
    for port in ports:
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))
    assert [path for folder in elsewhere.values() for path in folder.rglob("*")] == []


@pytest.mark.rig
@pytest.mark.parametrize(("taken", "server"), [(0, "etcd"), (1, "etcd"), (2, "kube-apiserver")])
def test_a_taken_port_is_told_by_whoever_wanted_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, server: str
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        ports = free_ports(3)
        ports[taken] = holder.getsockname()[1]
        monkeypatch.setattr(started, "free_ports", lambda count: ports)
        with (
            pytest.raises(ControlPlaneError, match=f"{server} ended by itself") as raised,
            control_plane(tmp_path / "plane"),
        ):
            pass
    assert f"127.0.0.1:{ports[taken]}: bind: address already in use" in str(raised.value)
    assert not running_below(tmp_path)


@pytest.mark.parametrize("dying", ["etcd", "kube_apiserver"])
def test_a_server_that_dies_is_told_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dying: str
) -> None:
    for server in ("etcd", "kube_apiserver"):
        script = "echo 'the disk is full' >&2; exit 3" if server == dying else "exec sleep 600"
        monkeypatch.setattr(started, server, stand_in(tmp_path, script))
    begun = time.monotonic()
    with pytest.raises(ControlPlaneError) as raised, control_plane(tmp_path / "plane"):
        pass
    assert re.search(r"ended by itself with 3; the end of .*\.log:\nthe disk is full", str(raised.value))
    assert time.monotonic() - begun < DEADLINE_S / 2
    assert not running_below(tmp_path)


@pytest.mark.parametrize("webhooks", [False, True])
def test_webhooks_are_asked_only_where_a_test_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, webhooks: bool
) -> None:
    monkeypatch.setattr(started, "etcd", stand_in(tmp_path, "exec sleep 600"))
    monkeypatch.setattr(started, "kube_apiserver", stand_in(tmp_path, 'echo "$@"; exit 3'))
    with pytest.raises(ControlPlaneError) as raised, control_plane(tmp_path / "plane", webhooks=webhooks):
        pass
    (off,) = re.findall(r"--disable-admission-plugins=(\S*)", str(raised.value))
    assert off == (
        "ServiceAccount" if webhooks else "ServiceAccount,MutatingAdmissionWebhook,ValidatingAdmissionWebhook"
    )


def test_one_that_never_answers_is_told_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "START_S", 1.0)
    for server in ("etcd", "kube_apiserver"):
        monkeypatch.setattr(started, server, stand_in(tmp_path, "echo waiting; exec sleep 600"))
    with (
        pytest.raises(ControlPlaneError, match="the API server is not ready after 1 s") as raised,
        control_plane(tmp_path / "plane"),
    ):
        pass
    assert str(raised.value).endswith("waiting\n")
    assert not running_below(tmp_path)


@pytest.mark.rig
def test_a_server_that_dies_under_a_test_is_told_at_its_end(tmp_path: Path) -> None:
    with (
        pytest.raises(ControlPlaneError, match="kube-controller-manager ended by itself with -9"),
        control_plane(tmp_path / "plane"),
    ):
        kill_controllers(tmp_path)


def kill_controllers(folder: Path) -> None:
    (controllers,) = (one for one in running_below(folder) if one.name() == "kube-controller-manager")
    controllers.kill()
    eventually(lambda: controllers.status() == psutil.STATUS_ZOMBIE, "the controllers are dead")


def running_below(folder: Path) -> list[psutil.Process]:
    """Children of this process that were started with, or from, something in the folder."""
    return [
        one
        for one in psutil.Process(os.getpid()).children(recursive=True)
        if any(str(folder) in word for word in one.cmdline())
    ]
