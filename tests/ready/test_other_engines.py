"""When a service of another engine than the bundled one is ready: by the config that Serve has, and by its answer."""

import json
from typing import Any

import httpx
import pytest

from infra.plan.health import PROXYS_OWN, Health, api_url, health_of
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.look import Wanted, blocked_by, look
from infra.platforms.gke.waiting import Expected, is_ready, unanswered
from tests.ready.test_look import CLUSTER, HOSTS, found, service, status
from workloads.spec import AppSpec, ServiceSpec, VllmSpec

WANTED = Wanted("chat", "ml", hosts=4, mark="mark-2")
RUNNING = {"status": "RUNNING"}
Json = dict[str, Any]


def seen(application: Json, mark: str = "mark-2", mark_status: str = "RUNNING", message: str = "") -> Json:
    """A status with both applications, where the second one has this deployment; none where it is empty."""
    made = status(application, ready="True")
    deployments = {mark: {"status": "HEALTHY", "message": message}} if mark else {}
    statuses = made["activeServiceStatus"]["applicationStatuses"]
    statuses["chat-mark"] = {"status": mark_status, "message": message, "serveDeploymentStatuses": deployments}
    return made


def test_it_is_ready_when_serve_has_the_config_that_is_waited_for() -> None:
    assert look(WANTED, found(seen(RUNNING), HOSTS)).there


@pytest.mark.parametrize(
    "stale",
    [
        status(RUNNING, ready="True"),
        seen(RUNNING, mark="mark-1"),
        seen(RUNNING, mark="", mark_status="DEPLOYING"),
        seen({"status": "DEPLOY_FAILED", "message": "of the config before"}, mark="mark-1"),
    ],
)
def test_a_status_of_the_config_before_is_neither_ready_nor_a_failure(stale: Json) -> None:
    looked = look(WANTED, found(stale))
    assert (looked.there, looked.failure, looked.progress) == (False, None, "waiting for Serve to get the change")
    assert blocked_by(WANTED, found(stale)) == "waiting for Serve to get the change"


def test_a_failure_of_the_config_that_is_waited_for_is_one() -> None:
    failure = look(WANTED, found(seen({"status": "DEPLOY_FAILED", "message": "no such model"}))).failure
    assert failure == "DEPLOY_FAILED: no such model"


def test_an_image_without_the_mark_says_what_it_lacks() -> None:
    lacking = seen(RUNNING, "", "DEPLOY_FAILED", "ModuleNotFoundError: No module named 'workloads'")
    assert look(WANTED, found(lacking)).failure == (
        "DEPLOY_FAILED: ModuleNotFoundError: No module named 'workloads' "
        "(application chat-mark, which needs tpu-ray in the image)"
    )


class Answers(Kubernetes):
    """An API server that passes every request on to one answer."""

    def __init__(self, status_code: int, text: str = "", body: object = None) -> None:
        self.asked: list[str] = []
        self.answer = httpx.Response(status_code, text=text if body is None else json.dumps(body))

    def get(self, path: str) -> Any:
        return service(seen(RUNNING))

    def every(self, path: str, **query: str) -> list[Any]:
        clusters = [{"metadata": {"name": CLUSTER}}]
        return {"rayclusters": clusters, "pods": list(HOSTS)}.get(path.rpartition("/")[2], [])

    def through_service(self, namespace: str, service: str, port: int, path: str) -> httpx.Response:
        self.asked.append(path)
        return self.answer


def expected(health: Health) -> Expected:
    return Expected(WANTED, "", "1 v6e 4x4 slice of pool `big`", 60, health)


ANY, VLLM, NAMED = Health("/", 500), Health("/v1/models", 201), Health("/healthz", 400)
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}


@pytest.mark.parametrize(
    ("health", "answers", "ready"),
    [
        (ANY, Answers(200, "hello"), True),
        (ANY, Answers(404, '{"detail": "Not Found"}'), True),
        (ANY, Answers(401, "who are you?"), True),
        (ANY, Answers(404, f"Path '/chat/' not found. {PROXYS_OWN}"), False),
        (ANY, Answers(500, "Internal Server Error"), False),
        (ANY, Answers(403, body=FORBIDDEN), False),
        (ANY, Answers(503, body={**FORBIDDEN, "code": 503}), False),
        (NAMED, Answers(204), True),
        (NAMED, Answers(307), True),
        (NAMED, Answers(404, "no such page"), False),
        (VLLM, Answers(200, body={"data": [{"id": "m"}]}), True),
        (VLLM, Answers(404), False),
    ],
)
def test_which_answers_count(health: Health, answers: Answers, ready: bool) -> None:
    assert is_ready(answers, expected(health)) is ready
    assert answers.asked == [f"chat{health.path}"]
    if not ready:
        assert unanswered(answers, expected(health)).startswith(
            f"GET /chat{health.path} is {answers.answer.status_code}"
        )


@pytest.mark.parametrize(
    ("engine", "health", "url"),
    [
        ({}, Health("/health", 201), "http://x/chat/v1"),
        ({"model": "hf:a/b", "engine": VllmSpec()}, VLLM, "http://x/chat/v1"),
        ({"engine": AppSpec(import_path="a:b")}, ANY, "http://x/chat"),
        ({"engine": AppSpec(import_path="a:b", health="/healthz")}, NAMED, "http://x/chat"),
    ],
)
def test_each_engine_is_asked_in_its_way(engine: dict[str, Any], health: Health, url: str) -> None:
    made = ServiceSpec.model_validate({"name": "chat", "pool": "p", **engine})
    assert health_of(made) == health
    assert api_url(made, "http://x/chat") == url


def test_the_words_of_what_is_waited_for() -> None:
    assert [health.wanted("chat") for health in (ANY, NAMED, VLLM)] == [
        "GET /chat/ is answered",
        "GET /chat/healthz is below 400",
        "GET /chat/v1/models is 200",
    ]
