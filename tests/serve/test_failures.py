"""Clients that leave, queues that are full, and engines that die."""

import json
import threading
import time
from collections.abc import Callable

import httpx
import pytest

from tests.serve.conftest import Running, Serve, serving
from tests.serve.fake import FakeEngine, FakeHosts
from workloads.models.tokenizer import Tokenizer


def until(what: Callable[[], bool], deadline_s: float = 20) -> None:
    """Wait for something that has no event of its own."""
    end = time.monotonic() + deadline_s
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def test_a_client_that_leaves_a_stream_frees_its_place(serve: Serve) -> None:
    running = serve("a" * 40, pause_before=5)
    body = {"model": "m", "prompt": "x", "stream": True, "max_tokens": 40}
    with running.http.stream("POST", "/v1/completions", json=body) as stream:
        lines = stream.iter_lines()  # kept: httpx closes the connection when the iterator is collected
        next(lines)
        assert running.loop.open_requests == 1
    until(lambda: running.loop.open_requests == 0)
    running.hosts.paused, running.hosts.pause_before = False, None
    until(lambda: running.hosts.engine.cancelled == ["r1"])
    assert running.complete(max_tokens=3).status_code == 200


def test_a_client_that_leaves_a_plain_request_frees_its_place(serve: Serve) -> None:
    running = serve("a" * 40, pause_before=3)
    with pytest.raises(httpx.ReadTimeout):
        running.http.post("/v1/completions", json={"model": "m", "prompt": "x"}, timeout=0.5)
    until(lambda: running.loop.open_requests == 0)
    running.hosts.paused = False
    until(lambda: running.hosts.engine.cancelled == ["r1"])


def test_a_full_queue(serve: Serve) -> None:
    running = serve("abc", most_open=2, paused=True)
    waiting = [threading.Thread(target=running.chat) for _ in range(2)]
    for thread in waiting:
        thread.start()
    until(lambda: running.loop.open_requests == 2)
    refused = running.chat()
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "queue_full"
    assert "retry-after" in refused.headers
    running.hosts.paused = False
    for thread in waiting:
        thread.join(20)
    assert running.chat().status_code == 200


def check_dead(running: Running, reason: str) -> None:
    health = running.http.get("/health")
    assert health.status_code == 503
    assert reason in health.json()["error"]["message"]
    refused = running.chat()
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "engine_dead"


def test_an_engine_that_dies_ends_streams_and_plain_requests(serve: Serve) -> None:
    running = serve("a" * 40, pause_before=5)
    plain: list[httpx.Response] = []
    body = {"model": "m", "prompt": "x", "stream": True, "max_tokens": 40}
    with running.http.stream("POST", "/v1/completions", json=body) as stream:
        lines = stream.iter_lines()
        next(lines)
        thread = threading.Thread(target=lambda: plain.append(running.chat()))
        thread.start()
        until(lambda: running.loop.open_requests == 2)
        running.hosts.broken = True
        rest = [line.removeprefix("data: ") for line in lines if line]
    thread.join(20)
    assert "[DONE]" not in rest
    error = json.loads(rest[-1])["error"]
    assert error["type"] == "server_error"
    assert error["message"].endswith("ValueError: the device is gone")
    assert plain[0].status_code == 503
    check_dead(running, "the device is gone")


def test_the_openai_client_sees_the_death_of_the_engine(serve: Serve) -> None:
    running = serve("a" * 40, pause_before=3)
    stream = running.openai.completions.create(model="m", prompt="x", stream=True)
    next(iter(stream))
    running.hosts.broken = True
    with pytest.raises(Exception, match="the device is gone"):
        list(stream)


def test_a_step_that_hangs_is_a_dead_engine(tokenizer: Tokenizer) -> None:
    with serving(tokenizer, FakeHosts(FakeEngine(), paused=True), step_timeout_s=0.2) as running:
        assert running.chat().status_code == 503
        check_dead(running, "step 1 did not end within 0.2 s")


def test_a_lost_host_ends_open_requests(serve: Serve) -> None:
    running = serve("a" * 40, paused=True)
    plain: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: plain.append(running.chat()))
    thread.start()
    until(lambda: running.loop.open_requests == 1)
    running.hosts.lost = True
    checked: list[str] = []

    async def check() -> None:
        try:
            await running.loop.check(5)
        except Exception as error:
            checked.append(str(error))

    running.in_loop(check())
    thread.join(20)
    assert plain[0].status_code == 503
    assert "a host of the slice" in checked[0]
    check_dead(running, "a host of the slice")
