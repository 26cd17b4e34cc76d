"""How much HBM a model takes on a slice, in whole bytes: a sum of what must be there, before a chip is paid for. Pure.

The bundled engine and recipe allocate by the same rules (`workloads.spec.layout`), so weights, KV cache and optimiser
state are exact, up to the compiler's padding. Of what a program needs beside them only a lower bound is counted; the
rest is left to a stated margin. What fits here may still be refused by the compiler.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, prod

from workloads.spec.decoder import LlamaConfig, parameter_shapes
from workloads.spec.generations import GENERATIONS
from workloads.spec.layout import cache_length, cache_rows, divided_axis, mesh_shape, replicated_kv_heads
from workloads.spec.slices import Slice, resolve_slice

GIB = 2**30

SERVED_BYTES = 2
"""Weights, KV cache and arithmetic of the bundled engine on TPU: bfloat16 (`workloads.serve.jax_engine`)."""
TRAINED_BYTES = 4
"""Weights, gradients and both moments of AdamW: float32 (`workloads.train.model`)."""
COMPUTED_BYTES = 2
"""Arithmetic of training on TPU: bfloat16."""
LOGIT_BYTES = 4
"""Scores of tokens: float32."""

MARGIN = 20
"""One part in so many of the HBM is left free, for what the runtime keeps and for programs' temporaries. Of each device
the compiler of libtpu 0.0.52 gives out 15.75 of 16 GiB (v5e), 31.24 of 32 (v6e), 94.74 of 96 (v7x), 30.5 of 32 (v4):
it says so where it refuses a program, see https://openxla.org/xla/errors/error_1000."""


@dataclass(frozen=True)
class Fit:
    """What lies in the HBM of one chip, in bytes: `parts` by their name, and a `margin` that is left free, of `hbm`."""

    parts: dict[str, int]
    margin: int
    hbm: int

    @property
    def used(self) -> int:
        """All parts together, without the margin."""
        return sum(self.parts.values())

    @property
    def needed(self) -> int:
        return self.used + self.margin

    @property
    def holds(self) -> bool:
        return self.needed <= self.hbm

    @property
    def percent(self) -> int:
        """Used of the HBM, rounded up: at most 95 where it fits, with the margin of a twentieth."""
        return -(-100 * self.used // self.hbm)


def serving_fit(config: LlamaConfig, slots: int, context: int, found: Slice) -> Fit:
    """A replica of the bundled engine on this slice: the mesh is the one of `mesh_shape`.

    Counted are the weights (whole on every device along the data axis), the KV cache of `slots` requests of `context`
    tokens each, allocated at the start, and one decode step's logits.
    """
    data, tensor = mesh_shape(found.devices, config.heads)
    served = config.with_kv_heads(replicated_kv_heads(config, tensor))
    rows = cache_rows(slots, data) // data
    cached = 2 * served.layers * rows * cache_length(context) * (served.kv_heads // tensor) * served.head_dim
    parts = {
        "weights": SERVED_BYTES * weights_per_device(served, tensor),
        "kv_cache": SERVED_BYTES * cached,
        "logits": LOGIT_BYTES * rows * config.vocab,
    }
    return _on_chip(parts, found)


def training_fit(config: LlamaConfig, global_batch: int, tensor: int, found: Slice) -> Fit:
    """A job of the bundled recipe on this slice, whose mesh is `(devices / tensor, tensor)`.

    Counted are the weights, a gradient and two moments of each (all whole on every device along the data axis), and of
    the activations a lower bound: what the backward pass must find of every layer, where nothing is computed twice.
    These are, for each token of a device's rows, the inputs of both norms, queries, keys, values, the mixed values and
    both inner sides of the MLP, for each pair of tokens in a row the weight of every head, and the logits.

    Raises:
        ValueError: `tensor` does not divide the heads and the devices.
    """
    if config.heads % tensor or found.devices % tensor:
        raise ValueError(f"tensor {tensor} does not divide {config.heads} heads and {found.devices} devices")
    rows = ceil(global_batch / (found.devices // tensor))
    weights = TRAINED_BYTES * weights_per_device(config, tensor)
    parts = {
        "weights": weights,
        "gradients": weights,
        "optimizer": 2 * weights,
        "activations": rows * config.context * activation_bytes(config, tensor),
    }
    return _on_chip(parts, found)


def weights_per_device(config: LlamaConfig, tensor: int) -> int:
    """Numbers of the parameters that one device holds."""
    shapes = parameter_shapes(config).items()
    return sum(prod(shape) // (1 if divided_axis(name, shape, tensor) is None else tensor) for name, shape in shapes)


def activation_bytes(config: LlamaConfig, tensor: int) -> int:
    """Bytes that one token of a training row leaves on a device for the backward pass, at the least."""
    c, kv_heads = config, ceil(config.kv_heads / tensor)
    of_heads = 2 * (c.heads // tensor + kv_heads) * c.head_dim + c.heads // tensor * c.context
    layer = 2 * c.width + of_heads + 2 * ceil(c.mlp_width / tensor)
    return COMPUTED_BYTES * c.layers * layer + LOGIT_BYTES * ceil(c.vocab / tensor)


def tensor_degrees(config: LlamaConfig, found: Slice) -> tuple[int, ...]:
    """The tensor-parallel degrees that a job may ask for on this slice, ascending."""
    most = mesh_shape(found.devices, config.heads)[1]
    return tuple(degree for degree in range(1, most + 1) if most % degree == 0)


def next_batch(global_batch: int, found: Slice) -> int:
    """The batch, or the next larger one that this slice's devices divide."""
    return ceil(global_batch / found.devices) * found.devices


def smallest(fit_on: Callable[[Slice], bool]) -> Iterator[Slice]:
    """The smallest slice of each generation on which it fits, of those that Ray reserves."""
    for table in GENERATIONS.values():
        usable = (resolve_slice(table.name, name) for name in table.topologies() if table.ray_accepts(name))
        found = next((shape for shape in usable if fit_on(shape)), None)
        if found is not None:
            yield found


def _on_chip(of_device: dict[str, int], found: Slice) -> Fit:
    """Bytes of one device as those of its chip, with the margin."""
    devices, hbm = found.devices // found.chips, found.hbm_gib_per_chip * GIB
    return Fit({name: size * devices for name, size in of_device.items()}, -(-hbm // MARGIN), hbm)
