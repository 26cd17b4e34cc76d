"""The model that is trained, its optimizer, and the two compiled steps. All arrays live in one mesh."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from workloads.data.batch_hash import batch_hash
from workloads.models.llama import Llama
from workloads.models.sharding import DATA, TENSOR, make_mesh, parameter_shardings
from workloads.spec.decoder import LlamaConfig, trained_config
from workloads.spec.job import JobSpec

Params = dict[str, jax.Array]
Batch = Mapping[str, jax.Array]
Sums = tuple[jax.Array, jax.Array, Params]
"""Of some rows: the sum of their losses, how many they are, and the gradient of that sum."""


class TrainState(NamedTuple):
    """What a step changes: weights by name (float32), and the optimizer's state."""

    params: Params
    opt_state: Any


def model_config(job: JobSpec) -> LlamaConfig:
    """The decoder that the job's `model` describes, over the byte vocabulary."""
    return trained_config(job.model)


def job_mesh(job: JobSpec) -> Mesh:
    """The job's mesh over all devices of all processes: (data, tensor)."""
    devices = jax.devices()
    data = job.mesh.data or len(devices) // job.mesh.tensor
    return make_mesh(devices, data, job.mesh.tensor)


def optimizer(job: JobSpec) -> optax.GradientTransformation:
    """AdamW; the rate rises over the first twentieth of the steps (at most 100) and falls as a cosine to a tenth."""
    warmup = max(1, min(100, job.steps // 20))
    rate = optax.warmup_cosine_decay_schedule(
        0.0, job.learning_rate, warmup, max(job.steps, warmup + 1), job.learning_rate / 10
    )

    def decays(params: Params) -> dict[str, bool]:
        return {name: not name.endswith("norm") for name in params}

    return optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(rate, b1=0.9, b2=0.95, weight_decay=0.1, mask=decays)
    )


@dataclass(frozen=True)
class Trainer:
    """A job's functions, bound to a mesh."""

    job: JobSpec
    mesh: Mesh

    @property
    def config(self) -> LlamaConfig:
        return model_config(self.job)

    @property
    def dtype(self) -> Any:
        """What the matrix units like: bfloat16 on TPU, float32 elsewhere. Weights and sums stay float32."""
        return jnp.bfloat16 if jax.default_backend() == "tpu" else jnp.float32

    @property
    def replicated(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())  # type: ignore[no-untyped-call]

    def init(self) -> TrainState:
        """The state before the first step: a function of the job's seed, whatever the mesh."""
        state: TrainState = jax.jit(self._init, out_shardings=self._shardings())()
        return state

    def abstract(self) -> TrainState:
        """Shapes, types and shardings of the state."""

        def place(leaf: Any, sharding: NamedSharding) -> Any:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)  # type: ignore[no-untyped-call]

        state: TrainState = jax.tree.map(place, jax.eval_shape(self._init), self._shardings())
        return state

    def _init(self) -> TrainState:
        params = Llama.init(self.config, nnx.Rngs(self.job.seed)).params()
        return TrainState(params, optimizer(self.job).init(params))

    def _shardings(self) -> Any:
        """Moments lie as their parameter does; counters are on every device."""
        params = parameter_shardings(self.config, self.mesh)
        shape = jax.eval_shape(self._init)
        opt = optax.tree_utils.tree_map_params(
            optimizer(self.job),
            lambda _, sharding: sharding,
            shape.opt_state,
            params,
            transform_non_params=lambda _: self.replicated,
        )
        return TrainState(params, opt)  # type: ignore[arg-type]

    def place(self, batch: Batch) -> Batch:
        """The batch as the mesh wants it: rows over `data`, the same on all of `tensor`. Ray Data knows no mesh."""
        rows = NamedSharding(self.mesh, PartitionSpec(DATA))  # type: ignore[no-untyped-call]
        return {name: jax.device_put(value, rows) for name, value in batch.items()}

    def _losses(self, params: Params, batch: Batch) -> jax.Array:
        """Mean loss of each row in nats per token, (rows,) float32."""
        tokens = batch["tokens"]
        logits = Llama.from_params(self.config, params, self.dtype)(tokens[:, :-1])
        losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return losses.mean(axis=-1)

    def _sums(self, params: Params, batch: Batch) -> Sums:
        """Over all rows of weight 1."""

        def loss(params: Params, batch: Batch) -> jax.Array:
            return (self._losses(params, batch) * batch["weight"]).sum()

        def sums(params: Params, batch: Batch) -> Sums:
            total, grads = jax.value_and_grad(loss)(params, batch)
            return total, batch["weight"].sum(), grads

        if jax.default_backend() == "tpu" or self.mesh.shape[TENSOR] > 1:
            return sums(params, batch)  # XLA divides it over the mesh

        # Between processes on CPU every buffer that is summed costs a round of messages among all devices: the weights
        # of the default job, one by one, 20 times as much as in one buffer. So each device sums its own rows first.
        def own_sums(params: Params, batch: Batch) -> Sums:
            own = sums(jax.lax.pcast(params, DATA, to="varying"), batch)
            flat, as_before = ravel_pytree(own)
            summed: Sums = as_before(jax.lax.psum(flat, DATA))  # type: ignore[no-untyped-call]
            return summed

        rows, everywhere = PartitionSpec(DATA), PartitionSpec()  # type: ignore[no-untyped-call]
        over_data = jax.shard_map(own_sums, mesh=self.mesh, in_specs=(everywhere, rows), out_specs=everywhere)
        total: Sums = over_data(params, batch)
        return total

    def train_step(self) -> Callable[[TrainState, Batch], tuple[TrainState, dict[str, jax.Array]]]:
        """Compiled: the next state, and of the batch `loss`, `rows` (those of weight 1) and `hash` (2,).

        The old state's memory is taken for the new one.
        """
        update = optimizer(self.job).update

        def step(state: TrainState, batch: Batch) -> tuple[TrainState, dict[str, jax.Array]]:
            total, rows, grads = self._sums(state.params, batch)
            updates, opt_state = update(jax.tree.map(lambda of: of / rows, grads), state.opt_state, state.params)
            params = optax.apply_updates(state.params, updates)
            seen = {"loss": total / rows, "rows": rows, "hash": batch_hash(jnp, batch["tokens"], batch["slot"])}
            return TrainState(params, opt_state), seen

        return jax.jit(step, donate_argnums=0, out_shardings=(self._shardings(), self.replicated))

    def eval_step(self) -> Callable[[Params, Batch], tuple[jax.Array, jax.Array]]:
        """Compiled: the sum of the rows' losses, and the number of rows, padded ones left out."""

        def step(params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
            weight = batch["weight"]
            return (self._losses(params, batch) * weight).sum(), weight.sum()

        return jax.jit(step, out_shardings=self.replicated)
