"""Services and runs against a stand-in for Ray's dashboard: what is put, stopped, deleted, and in which order."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local import applications as apps
from infra.platforms.local import jobs, leaving
from infra.platforms.local.cluster import Status
from infra.platforms.local.folders import Folders
from infra.platforms.local.job_resource import JobRunProvider
from infra.platforms.local.ports import pick
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.serve_resource import ServeAppProvider
from infra.platforms.local.spec import ClusterSpec, LocalPool
from infra.platforms.local.state import ClusterState
from workloads.spec import resolve_slice

ONE, FOUR = resolve_slice("v6e", "1x1"), resolve_slice("v6e", "2x2")
POOLS = (LocalPool("left", ONE, 1), LocalPool("right", ONE, 1))


class Ray(Dashboard):
    """Serve's applications and the jobs of one Ray. `did` is what was asked of it, in order."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", Folders.of("t"))
        self.did: list[str] = []
        self.serving: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}

    def get(self, path: str, timeout_s: float = 20) -> Any:
        if path == apps.PATH:
            return {"applications": self.serving}
        return {"logs": "the end"} if path.endswith("/logs") else list(self.jobs.values())

    def put(self, path: str, body: Any, timeout_s: float = 120) -> None:
        names = [application["name"] for application in body["applications"]]
        self.did.append(f"serve {' '.join(names)}".strip())
        running = {"status": "RUNNING", "deployments": {"D": {}}}
        self.serving = {name: self.serving.get(name, running) for name in names}

    def post(self, path: str, body: Any = None, timeout_s: float = 120) -> Any:
        if body is None:
            name = path.split("/")[-2]
            self.did.append(f"stop {name}")
            self.jobs[name]["status"] = "STOPPED"
        else:
            self.did.append(f"submit {body['entrypoint']}")
            self.jobs[body["submission_id"]] = {**body, "status": "RUNNING"}

    def delete(self, path: str, timeout_s: float = 120) -> None:
        name = path.split("/")[-1]
        assert self.jobs[name]["status"] in jobs.OVER
        self.did.append(f"forget {name}")
        del self.jobs[name]

    def found(self, path: str) -> Any:
        return self.jobs.get(path.split("/")[-1])


@pytest.fixture
def ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ray:
    """A cluster that is said to live, and whose Ray is the stand-in."""
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path))
    made = Ray()
    http_port, dashboard_port = pick(2)
    spec = ClusterSpec("t", http_port, dashboard_port, 16, POOLS)
    state = ClusterState("owner", "life", spec, "127.64.0.1:1", ())
    for module in (apps, jobs):
        monkeypatch.setattr(module, "running", lambda _: (state, made))
    monkeypatch.setattr(apps, "status", lambda _: Status(state))
    monkeypatch.setattr(jobs, "cluster_status", lambda _: Status(state))
    monkeypatch.setattr(leaving, "status", lambda _: Status(state))
    return made


def application(name: str, pool: str = "left") -> dict[str, Any]:
    return {"name": name, "args": {"service": {"pool": pool}}}


def silent(_line: str) -> None:
    return


def run(entrypoint: str, **other: Any) -> dict[str, Any]:
    """Properties of a run's resource."""
    return {
        "stack": "t",
        "run_name": "story-r1",
        "entrypoint": entrypoint,
        "pool": "right",
        "export_dir": "/nowhere",
        "session": "life",
        "declared": leaving.declared([], ["story-r1"]),
        **other,
    }


def test_what_the_stack_no_longer_has_leaves_before_the_new_comes(ray: Ray) -> None:
    apps.put_application("t", application("old"))
    jobs.submit("t", "old-r1", "old run", "right")
    ray.jobs["by-hand"] = {"submission_id": "by-hand", "status": "RUNNING", "entrypoint": "x", "metadata": {}}
    ray.did.clear()
    props = {"stack": "t", "name": "new", "application": '{"name": "new"}', "session": "life"}
    ServeAppProvider().create({**props, "declared": leaving.declared(["new"], [])})
    assert ray.did == ["serve", "stop old-r1", "forget old-r1", "serve new"]
    ray.did.clear()
    jobs.end("t", "old-r1")
    apps.delete_application("t", "old")
    assert ray.did == [], "to delete them afterwards is nothing"
    JobRunProvider().create(run("story run"))
    assert ray.did == ["serve", "submit story run"]


def test_another_list_of_names_is_no_change_of_a_service(ray: Ray) -> None:
    olds = {"stack": "t", "name": "chat", "application": '{"name": "chat"}', "session": "life"}
    olds["declared"] = leaving.declared(["chat"], [])
    ServeAppProvider().create(olds)
    news = {**olds, "declared": leaving.declared(["chat", "more"], ["story-r1"])}
    assert not ServeAppProvider().diff("t/chat", olds, news).changes
    assert leaving.declared(["a", "b"], []) == leaving.declared(["b", "a"], [])


def test_a_pool_that_goes_or_changes_ends_its_services_and_runs(ray: Ray) -> None:
    apps.put_application("t", application("chat", "left"))
    apps.put_application("t", application("story", "right"))
    jobs.submit("t", "story-r1", "story run", "right")
    ray.did.clear()
    leaving.leave_pools(ClusterSpec("t", 1, 2, 16, POOLS), silent)
    assert ray.did == []
    said: list[str] = []
    leaving.leave_pools(ClusterSpec("t", 1, 2, 16, (POOLS[0], LocalPool("right", FOUR, 1))), said.append)
    assert ray.did == ["serve chat", "stop story-r1", "forget story-r1"]
    assert said[0] == "ending service story: its pool right changes its slices"
    # What was ended here is wanted again, with the new slices.
    assert JobRunProvider().diff("story-r1", run("story run"), run("story run")).changes


@pytest.mark.parametrize(
    ("now", "did"),
    [
        ({"status": "DEPLOY_FAILED", "deployments": {"D": {}}}, ["serve", "serve chat"]),
        ({"status": "DEPLOY_FAILED", "deployments": {}}, ["serve chat"]),
        ({"status": "RUNNING", "deployments": {"D": {}}}, ["serve chat"]),
    ],
)
def test_a_service_that_failed_is_put_so_that_serve_tries_again(ray: Ray, now: dict[str, Any], did: list[str]) -> None:
    props = {"stack": "t", "name": "chat", "application": '{"name": "chat"}', "session": "life"}
    props["declared"] = leaving.declared(["chat"], [])
    ServeAppProvider().create(props)
    ray.serving["chat"] = now
    ray.did.clear()
    assert ServeAppProvider().diff("t/chat", props, props).changes == (now["status"] == "DEPLOY_FAILED")
    assert ServeAppProvider().read("t/chat", props).id == "t/chat"
    ServeAppProvider().update("t/chat", props, props)
    assert ray.did == did


@pytest.mark.parametrize(
    ("state", "entrypoint", "did"),
    [
        ("FAILED", "60 s", ["forget story-r1", "submit 60 s"]),
        ("STOPPED", "60 s", ["forget story-r1", "submit 60 s"]),
        ("FAILED", "30 s", []),
        ("RUNNING", "60 s", []),
        ("SUCCEEDED", "60 s", []),
    ],
)
def test_a_run_that_did_not_succeed_goes_on_with_other_settings(
    ray: Ray, state: str, entrypoint: str, did: list[str]
) -> None:
    olds, news = run("30 s"), run(entrypoint)
    JobRunProvider().create(olds)
    ray.jobs["story-r1"]["status"] = state
    ray.did.clear()
    assert JobRunProvider().diff("story-r1", olds, news).changes == bool(did)
    if did:
        assert JobRunProvider().update("story-r1", olds, news).outs == news
        assert not JobRunProvider().diff("story-r1", news, news).changes
    else:
        JobRunProvider().create(news)
    assert ray.did == did


def test_a_new_life_of_the_cluster_submits_the_run_as_it_was(ray: Ray) -> None:
    olds, news = run("30 s", session="before"), run("60 s")
    assert JobRunProvider().diff("story-r1", olds, news).changes
    assert JobRunProvider().update("story-r1", olds, news).outs == {**news, "entrypoint": "30 s"}
    assert ray.did == ["submit 30 s"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return lambda: now[0]


def test_a_run_ends_by_its_own_limit_before_the_wait_for_it_does(ray: Ray, clock: Callable[[], float]) -> None:
    began = time.monotonic()
    jobs.submit("t", "story-r1", "30 s", "right")
    with pytest.raises(PlatformError) as error:
        jobs.wait_for_export("t", "story-r1", "/nowhere", 30, silent)
    assert clock() > 30 + 50
    assert time.monotonic() - began < 30
    assert "raise `timeout_s`" in error.value.next_step
    ray.jobs["story-r1"]["status"] = "FAILED"
    with pytest.raises(PlatformError) as error:
        jobs.wait_for_export("t", "story-r1", "/nowhere", 30, silent)
    assert "raise `timeout_s` (or that limit) and `up` again: it goes on" in error.value.next_step


def test_a_port_that_was_taken_before_the_first_service_is_refused(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(_state: ClusterState) -> None:
        raise PlatformError("port 8000 is taken")

    apps.put_application("t", application("chat"))
    ray.did.clear()
    monkeypatch.setattr(apps, "require_http_port", taken)
    apps.put_application("t", application("more"))
    apps.delete_application("t", "chat")
    apps.delete_application("t", "more")
    ray.did.clear()
    with pytest.raises(PlatformError):
        apps.put_application("t", application("chat"))
    assert ray.did == []
    assert apps.wanted_applications("t") == {}
