"""The wait for a RayService's answer: what ends it, and in which words."""

from typing import Any

import httpx
import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.missing_secret import next_step
from infra.platforms.gke.waiting import Expected, is_ready, wait_until_ready
from tests.ready.test_look import CLUSTER, HOSTS, service, status

EXPECTED = Expected(Wanted("chat", "ml", hosts=4), "mark2", "1 v6e 4x4 slice of pool `big`", timeout_s=600)
RUNNING = service(status({"status": "RUNNING"}, ready="True"))
FAILED = service(status({"status": "DEPLOY_FAILED", "message": "no model at /no/such/folder"}))
AWAY = httpx.ConnectError("connection refused")


class Cluster(Kubernetes):
    """An API server that gives one answer after the other, the last one for ever."""

    def __init__(self, *services: Any, marks: tuple[str | None, ...] = ("mark2",)) -> None:
        self.services, self.marks = list(services), list(marks)

    def get(self, path: str) -> Any:
        assert path == "/apis/ray.io/v1/namespaces/ml/rayservices/chat"
        found = self.services.pop(0) if len(self.services) > 1 else self.services[0]
        if isinstance(found, Exception):
            raise found
        return found

    def every(self, path: str, **query: str) -> list[Any]:
        clusters = [{"metadata": {"name": CLUSTER}}]
        return {"rayclusters": clusters, "pods": list(HOSTS)}.get(path.rpartition("/")[2], [])

    def through_service(self, namespace: str, service: str, port: int, path: str) -> httpx.Response:
        assert (namespace, service, port, path) == ("ml", "chat-serve-svc", 8000, "chat/health")
        mark = self.marks.pop(0) if len(self.marks) > 1 else self.marks[0]
        return httpx.Response(200, json={"mark": mark}) if mark else httpx.Response(503, text="no endpoints")


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is what passes between two looks: a second each."""
    clock = iter(range(100_000))
    monkeypatch.setattr("infra.platforms.gke.patience.time.sleep", lambda _: None)
    monkeypatch.setattr("infra.platforms.gke.patience.time.monotonic", lambda: float(next(clock)))


def wait(*services: Any, marks: tuple[str | None, ...] = ("mark2",), said: list[str] | None = None) -> str:
    lines: list[str] = [] if said is None else said
    return wait_until_ready(Cluster(*services, marks=marks), EXPECTED, lines.append)


def test_a_service_that_answers_gives_its_url() -> None:
    assert wait(RUNNING) == "http://chat-serve-svc.ml.svc.cluster.local:8000/chat"


def test_the_answer_of_what_was_served_before_is_not_the_services() -> None:
    assert wait(RUNNING, marks=("mark1", "mark1", "mark2"))
    assert not is_ready(Cluster(RUNNING, marks=("mark1",)), EXPECTED)
    assert is_ready(Cluster(RUNNING), EXPECTED)


@pytest.mark.parametrize(
    ("failure", "step"),
    [
        (
            'pod a waits in container ray-worker: CreateContainerConfigError: secret "wandb" not found',
            "make it with its keys, `kubectl create secret generic wandb -n ml --from-literal=<key>=<value>`, then "
            "`up` again",
        ),
        (
            "pod a waits in container ray-worker: CreateContainerConfigError: couldn't find key api-key in Secret "
            "ml/wandb",
            "put key api-key into secret wandb of namespace ml, then `up` again",
        ),
        ('configmaps "wandb" not found', "otherwise"),
    ],
)
def test_a_secret_that_is_not_there_is_made_with_a_command(failure: str, step: str) -> None:
    assert next_step(failure, "ml", "otherwise") == step


def test_a_failure_that_stands_ends_the_wait_in_serves_words() -> None:
    with pytest.raises(PlatformError) as caught:
        wait(FAILED)
    assert str(caught.value) == (
        "tpu-ray:services: service chat failed\n"
        "  wanted: GET /chat/health is 200, on 1 v6e 4x4 slice of pool `big`\n"
        "  found:  DEPLOY_FAILED: no model at /no/such/folder\n"
        "  next:   correct what the reason names, then `up` again"
    )


def test_the_failure_of_the_application_before_is_not_this_ones() -> None:
    assert wait(FAILED, FAILED, FAILED, RUNNING)


def test_an_api_server_that_is_away_for_a_while_is_waited_for() -> None:
    assert wait(*[AWAY] * 30, RUNNING)


@pytest.mark.parametrize(
    ("seen", "marks", "reason"),
    [
        (
            service(status({"status": "DEPLOYING", "message": "1 replica waits"})),
            ("mark2",),
            "Serve is DEPLOYING: 1 replica waits",
        ),
        (RUNNING, (None,), "GET /chat/health is 503: no endpoints"),
        (AWAY, ("mark2",), "the API server cannot be asked: connection refused"),
    ],
)
def test_the_deadline_ends_the_wait_with_the_deepest_reason(
    seen: Any, marks: tuple[str | None, ...], reason: str
) -> None:
    with pytest.raises(PlatformError, match=r"service chat does not answer after 6\d\d s") as caught:
        wait(seen, marks=marks)
    assert caught.value.found == reason
    assert "raise the service's `ready_timeout_s`" in caught.value.next_step


def test_progress_is_told_now_and_then() -> None:
    said: list[str] = []
    wait(*[service(status({"status": "DEPLOYING", "message": "1 replica waits"}))] * 40, RUNNING, said=said)
    assert 1 < len(said) < 10
    assert said[0].startswith("service chat (")
    assert said[0].endswith("Serve is DEPLOYING: 1 replica waits")
