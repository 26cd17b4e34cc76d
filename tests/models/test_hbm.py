"""The arithmetic of HBM against what engine and recipe really allocate: parameter trees, caches, optimiser states."""

from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
import pytest
from flax import nnx
from jax.sharding import AbstractMesh

from tests.models import toy
from workloads.models.llama import Llama
from workloads.models.sharding import DATA, TENSOR, parameter_shardings, replicated_kv_heads
from workloads.serve.jax_engine import JaxEngine
from workloads.spec import EngineSpec, resolve_slice
from workloads.spec.decoder import LlamaConfig, parameter_shapes, trained_config
from workloads.spec.fit import activation_bytes, serving_fit, training_fit, weights_per_device
from workloads.spec.job import JobSpec, MeshSpec, ModelSpec
from workloads.spec.layout import mesh_shape
from workloads.train.model import Trainer

CONFIGS = {
    "toy": toy.CONFIG,
    "default job": trained_config(ModelSpec()),
    "tied, nine heads": LlamaConfig(49152, 576, 30, 9, 3, 64, 1536, 8192),
    "8B": LlamaConfig(128256, 4096, 32, 32, 8, 128, 14336, 8192, tie_embeddings=False),
    "odd vocabulary": LlamaConfig(301, 64, 3, 8, 2, 8, 100, 64),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_one_device_holds_the_real_parameter_tree(config: LlamaConfig) -> None:
    tree = nnx.eval_shape(lambda: Llama.init(config, nnx.Rngs(0)))
    leaves = jax.tree.leaves(nnx.state(tree, nnx.Param))
    assert weights_per_device(config, 1) == config.parameters == sum(prod(leaf.shape) for leaf in leaves)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("devices", [1, 4, 16, 64])
def test_the_shards_of_a_served_model_are_those_of_its_mesh(config: LlamaConfig, devices: int) -> None:
    data, tensor = mesh_shape(devices, config.heads)
    served = config.with_kv_heads(replicated_kv_heads(config, tensor))
    shardings = parameter_shardings(served, AbstractMesh((data, tensor), (DATA, TENSOR)))  # type: ignore[arg-type]
    shards = [prod(shardings[name].shard_shape(shape)) for name, shape in parameter_shapes(served).items()]
    assert weights_per_device(served, tensor) == sum(shards)


@pytest.mark.parametrize(("slots", "context"), [(1, 100), (3, 129), (4, 256)])
def test_the_engine_allocates_the_weights_and_the_cache(tmp_path: Path, slots: int, context: int) -> None:
    spec = EngineSpec(max_slots=slots, context=context)
    engine = JaxEngine(str(toy.hf_folder(tmp_path / "toy")), spec, jax.devices()[:1], jnp.bfloat16)
    fit = serving_fit(toy.CONFIG, slots, context, resolve_slice("v6e", "1x1"))
    assert fit.parts["weights"] == _bytes(engine._programs._params)
    assert fit.parts["kv_cache"] == _bytes(engine._programs._cache)


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
def test_the_recipe_keeps_weights_and_two_moments(tensor: int) -> None:
    job = JobSpec(name="a", pool="p", mesh=MeshSpec(tensor=tensor))
    mesh = AbstractMesh((16 // tensor, tensor), (DATA, TENSOR))
    state = Trainer(job, mesh).abstract()  # type: ignore[arg-type]
    fit = training_fit(trained_config(job.model), 32, tensor, resolve_slice("v6e", "4x4"))
    assert fit.parts["weights"] == fit.parts["gradients"] == _bytes(state.params)
    moments = [leaf for leaf in jax.tree.leaves(state.opt_state) if leaf.ndim]
    assert fit.parts["optimizer"] == _bytes(moments)


@pytest.mark.parametrize(
    "model",
    [
        ModelSpec(layers=3, width=64, heads=4, kv_heads=2, mlp_width=96, context=32),
        ModelSpec(layers=2, width=64, heads=8, kv_heads=8, mlp_width=200, context=256),
    ],
)
def test_differentiation_keeps_at_least_the_counted_activations(model: ModelSpec) -> None:
    """What the scan over the layers hands to the backward pass, of bfloat16 arithmetic as on TPU, and the logits."""
    config, rows = trained_config(model), 5

    def loss(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
        logits = Llama.from_params(config, params, jnp.bfloat16)(tokens[:, :-1])
        losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return losses.sum()

    params = {name: jnp.zeros(shape) for name, shape in parameter_shapes(config).items()}
    tokens = jnp.zeros((rows, config.context + 1), jnp.int32)
    equations = jax.make_jaxpr(jax.value_and_grad(loss))(params, tokens).jaxpr.eqns
    forward = next(e for e in equations if e.primitive.name == "scan" and not e.params["reverse"])
    kept = [var.aval for var in forward.outvars if var.aval.shape[:2] == (config.layers, rows)]
    logits = rows * config.context * config.vocab * 4
    counted = rows * config.context * activation_bytes(config, 1)
    # Some are kept twice, in float32 too; a bound far below what is there would refuse nothing.
    assert counted <= _bytes(kept) + logits <= 6 * counted


def _bytes(tree: Any) -> int:
    """Of one device."""
    total = 0
    for leaf in jax.tree.leaves(tree):
        sharding = getattr(leaf, "sharding", None)
        shape = leaf.shape if sharding is None else sharding.shard_shape(leaf.shape)
        total += prod(shape) * leaf.dtype.itemsize
    return total
