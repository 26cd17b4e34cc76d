"""A tiny byte-level tokenizer, and the HTTP application on a real port over fake hosts."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from openai import OpenAI
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as HfTokenizer

from tests.serve.fake import FakeEngine, FakeHosts
from workloads.models.tokenizer import Tokenizer
from workloads.serve.http import Served, make_app
from workloads.serve.loop import EngineLoop

CONTEXT = 64
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' and loop.first %}"
    "{{ raise_exception('the first message is not from the assistant') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}>"
)


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> Path:
    """One token per byte, and `<end>`; every character outside ASCII is thus several tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = HfTokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": "<end>"} | ({"chat_template": template} if template else {})
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


@dataclass
class Running:
    """A served model, its hosts, and two clients."""

    url: str
    hosts: FakeHosts
    loop: EngineLoop
    http: httpx.Client
    openai: OpenAI
    events: asyncio.AbstractEventLoop

    def in_loop(self, work: Coroutine[object, object, None]) -> None:
        """Run it where the server runs, and wait for it."""
        asyncio.run_coroutine_threadsafe(work, self.events).result(30)

    def post(self, path: str, **body: object) -> httpx.Response:
        return self.http.post(path, json={"model": "m", **body})

    def chat(self, **body: object) -> httpx.Response:
        return self.post("/v1/chat/completions", **{"messages": [{"role": "user", "content": "hi"}], **body})

    def complete(self, **body: object) -> httpx.Response:
        return self.post("/v1/completions", **{"prompt": "hi", **body})


@contextmanager
def serving(
    tokenizer: Tokenizer, hosts: FakeHosts, most_open: int = 8, step_timeout_s: float = 60
) -> Iterator[Running]:
    """uvicorn in a thread on a port that the kernel chooses."""
    loop = EngineLoop(hosts, most_open, step_timeout_s)
    app = make_app(Served("m", 1, "fp_test", "mark_test", CONTEXT, tokenizer, loop))
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=5))
    events = asyncio.new_event_loop()
    thread = threading.Thread(target=events.run_until_complete, args=(server.serve([listener]),))
    thread.start()
    try:
        with (
            httpx.Client(base_url=url, timeout=30) as http,
            OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=30) as openai,
        ):
            yield Running(url, hosts, loop, http, openai, events)
    finally:
        hosts.paused = False
        server.should_exit = True
        thread.join(30)
        asyncio.set_event_loop(None)
        events.run_until_complete(loop.close())
        events.close()
        listener.close()


Serve = Callable[..., Running]


@pytest.fixture
def serve(tokenizer: Tokenizer) -> Iterator[Serve]:
    """`serve(answer="text", ...)` starts one; all are stopped afterwards."""
    with ExitStack() as stack:

        def start(answer: str = "", codec: Tokenizer | None = None, most_open: int = 8, **hosts: object) -> Running:
            script = [*tokenizer.encode(answer), *tokenizer.eos_token_ids] if answer else []
            fake = FakeHosts(FakeEngine(script=script), **hosts)  # type: ignore[arg-type]
            return stack.enter_context(serving(codec or tokenizer, fake, most_open))

        yield start
