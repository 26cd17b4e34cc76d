"""A user's own application on the real Pulumi engine and the real Serve, and the mark that goes with it on GKE."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi.automation import CommandError

from infra.plan.mark import mark_application, mark_name, mark_of
from infra.plan.workloads import serve_application
from infra.platforms.local import cluster
from infra.platforms.local.applications import PATH, applications, running
from tests.local.asking import asked_all_the_time
from tests.local.engine import Engine

pytestmark = pytest.mark.slow

SINGLE = {"name": "single", "generation": "v6e", "topology": "1x1"}


def mine(args: dict[str, Any], **more: str) -> dict[str, Any]:
    engine = {"kind": "app", "import_path": "tests.local.userapp:build", "args": args, **more}
    return {"name": "mine", "pool": "single", "engine": engine, "ready_timeout_s": 120}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One stack for this module: the tests below are the steps of its life, in their order."""
    folder = tmp_path_factory.mktemp("stack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_HOME", str(folder / "home"))
        made = Engine(folder, application_of=serve_application)
        try:
            yield made
        finally:
            cluster.stop(made.stack_name, print)


def test_the_application_serves_on_the_slice_of_its_pool(engine: Engine) -> None:
    """It has nothing at `/`; that is its answer too. Its URL is its own, without /v1."""
    engine.declare([SINGLE], [mine({"greeting": "hello"})])
    engine.up()
    assert engine.outputs()["endpoints"] == {"mine": f"http://127.0.0.1:{engine.http_port}/mine"}
    assert engine.outputs()["curl"] == ""
    found = engine.get("/mine/greeting")
    assert (found["greeting"], found["slice"]) == ("hello", "single-0")
    assert set(engine.preview()) == {"same"}


def test_changed_args_are_another_application_and_no_request_is_lost(engine: Engine) -> None:
    """What `plan --against` says of a service of one replica that is changed in place: requests wait."""
    engine.declare([SINGLE], [mine({"greeting": "good day"}, health="/greeting")])
    url = f"http://127.0.0.1:{engine.http_port}/mine/greeting"
    with asked_all_the_time(url) as answers, asked_all_the_time(f"{url}?after_s=3") as slow_answers:
        assert engine.up().get("update") == 2
    assert engine.get("/mine/greeting")["greeting"] == "good day"
    for found in (answers, slow_answers):
        assert found.lost == []
        greetings = [json.loads(text)["greeting"] for _, text, _ in found.found]
        assert (greetings[0], greetings[-1]) == ("hello", "good day")
        assert greetings == sorted(greetings, reverse=True), "never the old one after the new one"
    print(f"one replica, changed in place: {len(answers.found)} requests, none lost, longest {answers.longest_s:.1f} s")


def test_the_applications_own_error_is_quoted_until_it_is_corrected(engine: Engine) -> None:
    engine.declare([SINGLE], [mine({"greting": "hello"}, health="/greeting")])
    for _ in range(2):
        with pytest.raises(CommandError) as error:
            engine.up()
        assert "service mine failed" in str(error.value)
        assert "KeyError: 'args.greeting'" in str(error.value)
    engine.declare([SINGLE], [mine({"greeting": "hello"}, health="/greeting")])
    engine.up()
    assert engine.get("/mine/greeting")["greeting"] == "hello"


def test_a_status_that_lists_the_mark_is_about_the_config_that_came_with_it(engine: Engine) -> None:
    """What Ready on GKE builds on: both applications in one request, as KubeRay sends them."""
    state, dashboard = running(engine.stack_name)
    before = applications(engine.stack_name)["mine"]["deployed_app_config"]
    for greeting in ("first", "second"):
        application = {**before, "args": {"greeting": greeting}}
        mark = mark_application(application)
        config = {
            "proxy_location": "HeadOnly",
            "http_options": {"host": "127.0.0.1", "port": state.spec.http_port},
            "applications": [application, mark],
        }
        dashboard.put(PATH, config)
        name, deadline, ready = mark_of(application), time.monotonic() + 120, False
        while not ready:
            assert time.monotonic() < deadline, "it did not come about in 120 s"
            seen = applications(engine.stack_name)
            if list(seen[mark_name("mine")]["deployments"]) != [name]:
                continue
            # From the first look at which the mark is there, the status is the new application's.
            assert seen["mine"]["status"] in ("DEPLOYING", "RUNNING")
            ready = all(seen[each]["status"] == "RUNNING" for each in ("mine", mark_name("mine")))
        assert seen[mark_name("mine")]["deployments"][name]["replicas"] == []
        assert engine.get("/mine/greeting")["greeting"] == greeting
    assert engine.get("/-/routes") == {"/mine": "mine"}
