"""Replicas on real Ray with emulated slices: one slice each, the same tokens on any, and nothing left behind."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from infra.plan.workloads import serve_application
from infra.platforms.errors import PlatformError
from infra.platforms.local import cluster
from infra.platforms.local.applications import applications, delete_application, put_application, running
from infra.platforms.local.folders import Folders
from infra.platforms.local.ports import pick
from infra.platforms.local.readiness import Expected, answers, wait_until_ready
from infra.platforms.local.spec import ClusterSpec, LocalPool
from tests.serve.tiny import write_tiny_model
from workloads.spec import EngineSpec, ServiceLaunch, ServiceSpec, Slice, resolve_slice

pytestmark = pytest.mark.slow

STACK = "serve-test"
ONE, WIDE = resolve_slice("v6e", "1x1"), resolve_slice("v6e", "2x4", "ct6e-standard-4t")
PROMPT = {"prompt": "hello", "max_tokens": 60, "temperature": 0, "ignore_eos": True, "return_token_ids": True}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster with two pools of one shape and a pool of one slice of two hosts."""
    folder = tmp_path_factory.mktemp("home")
    http_port, dashboard_port = pick(2)
    pools = (LocalPool("left", ONE, 1), LocalPool("right", ONE, 1), LocalPool("wide", WIDE, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_HOME", str(folder))
        try:
            # Pool by pool: a raylet ends when its agent is not up within Ray's 30 s, and many at once share few cores.
            for known in range(1, len(pools) + 1):
                cluster.start(ClusterSpec(STACK, http_port, dashboard_port, 12.0, pools[:known]), print)
            yield folder
        finally:
            cluster.stop(STACK, print)


def deploy(
    name: str, pool: str, slice: Slice, model: Path | str, reserve_timeout_s: int = 60, build: str | None = None
) -> str:
    """Put a service, wait until it answers; its URL."""
    engine = EngineSpec(context=128, prefill_buckets=(64, 128))
    service = ServiceSpec(name=name, pool=pool, model="tiny", engine=engine, reserve_timeout_s=reserve_timeout_s)
    application = serve_application(ServiceLaunch(service=service, slice=slice, model=str(model), model_name=name))
    put_application(STACK, application | ({"import_path": build} if build else {}))
    return wait_until_ready(STACK, Expected(name, "a slice", slice.ray_head_resource, 300), print)


@pytest.fixture(scope="module")
def steady(home: Path, model: Path) -> str:
    """URL of a service that stays for all tests, on the only slice of pool left."""
    return deploy("steady", "left", ONE, model)


@pytest.fixture
def gone_after(steady: str) -> Iterator[None]:
    """Services that the test adds are gone afterwards, their slices free."""
    yield
    for name in applications(STACK):
        if name != "steady":
            delete_application(STACK, name)
    until(lambda: chips_taken() == 1, 30)


def until(what: Callable[[], bool], deadline_s: float) -> None:
    end = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < end, f"it did not come about in {deadline_s:g} s"
        time.sleep(0.2)


def chips_taken() -> float:
    """Chips of the cluster that somebody holds."""
    status: Any = running(STACK)[1].get("/api/cluster_status")
    used, _ = status["data"]["clusterStatus"]["loadMetricsReport"]["usage"]["TPU"]
    return float(used)


def host_processes(home: Path, slice_name: str) -> list[psutil.Process]:
    """The processes of this cluster that own the chips of this slice."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if not (process.info["cmdline"] or [""])[0].startswith("ray::Host"):
            continue
        environment = process.environ()
        if environment.get("TPU_RAY_HOME") == str(home) and environment.get("TPU_NAME") == slice_name:
            found.append(process)
    return found


def replicas_made(name: str) -> int:
    """How many replicas of this service there have been, by their logs."""
    return len(list(Path(Folders.of(STACK).ray_temp).glob(f"*/session_latest/logs/serve/replica_{name}_*.log")))


def tokens(url: str, model: str) -> list[int]:
    answer = httpx.post(f"{url}/v1/completions", json={"model": model, **PROMPT}, timeout=60)
    assert answer.status_code == 200, answer.text
    ids: list[int] = answer.json()["choices"][0]["token_ids"]
    return ids


@pytest.mark.usefixtures("gone_after")
def test_two_hosts_give_the_same_tokens_as_one(home: Path, steady: str, model: Path) -> None:
    wide = deploy("wide", "wide", WIDE, model)
    assert len(host_processes(home, "wide-0")) == 2
    assert len(host_processes(home, "left-0")) == 1
    assert host_processes(home, "right-0") == [], "a slice of the same shape in another pool is not touched"
    assert chips_taken() == 9
    assert tokens(steady, "steady") == tokens(wide, "wide")
    assert len(tokens(steady, "steady")) == 60


@pytest.mark.usefixtures("gone_after")
def test_no_free_slice(home: Path, steady: str, model: Path) -> None:
    with pytest.raises(PlatformError) as failed:
        deploy("second", "left", ONE, model, reserve_timeout_s=3)
    text = str(failed.value)
    assert "wanted: one free v6e 1x1 slice of pool left, within 3 s" in text
    assert "found: left-0 is busy: held by service steady" in text
    assert "next: raise `slices` of pool left" in text
    assert host_processes(home, "right-0") == []
    assert replicas_made("second") == 1, "one wait is final"
    assert httpx.get(f"{steady}/health").status_code == 200


@pytest.mark.usefixtures("gone_after")
def test_a_wrong_model_costs_no_slice() -> None:
    with pytest.raises(PlatformError, match="/no/such/model: there is no such file or folder"):
        deploy("wrong", "right", ONE, "/no/such/model")
    assert chips_taken() == 1


@pytest.mark.usefixtures("gone_after")
def test_a_host_that_dies_while_it_boots_is_tried_again(model: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(model, tmp_path / "model"))
    url = deploy("unlucky", "right", ONE, own, build="tests.serve.built:build_dies_once")
    assert (own / "died").exists()
    assert replicas_made("unlucky") == 1
    assert len(tokens(url, "unlucky")) == 60


@pytest.mark.usefixtures("gone_after")
def test_other_services_answer_while_one_comes_and_goes(steady: str, model: Path) -> None:
    before, given, over = tokens(steady, "steady"), list[list[int]](), threading.Event()
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            while not over.is_set():
                given.append(tokens(steady, "steady"))
        except BaseException as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        deploy("other", "right", ONE, model, build="tests.serve.built:build")
        after_coming = len(given)
        delete_application(STACK, "other")
        after_going = len(given)
        until(lambda: bool(failed) or len(given) > after_going + 3, 60)
    finally:
        over.set()
        asking.join(90)
    assert failed == []
    assert after_coming > 0
    assert all(answer == before for answer in given)


def test_a_client_that_leaves_through_serves_proxy_frees_its_place(steady: str) -> None:
    def health() -> dict[str, int]:
        answer: dict[str, int] = httpx.get(f"{steady}/health").json()
        return answer

    body = {"model": "steady", "prompt": "h", "max_tokens": 120, "ignore_eos": True, "stream": True}
    steps = health()["steps"]
    with httpx.stream("POST", f"{steady}/v1/completions", json=body) as stream:
        next(stream.iter_lines())
    until(lambda: health()["open_requests"] == 0, 20)
    assert health()["steps"] - steps < 120
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{steady}/v1/completions", json={**body, "stream": False}, timeout=0.05)
    until(lambda: health()["open_requests"] == 0, 20)


def test_a_lost_host_process_is_replaced(home: Path, steady: str) -> None:
    before = tokens(steady, "steady")
    (process,) = host_processes(home, "left-0")
    os.kill(process.pid, 9)
    until(lambda: httpx.get(f"{steady}/health").status_code == 503, 30)
    # Between the old replica's end and the new one's start the proxy keeps requests waiting.
    until(lambda: answers(steady), 120)
    assert tokens(steady, "steady") == before
    assert host_processes(home, "left-0") != [process]
