"""How the bundled engine and recipe lay a model over the devices of a slice, as numbers. Pure: no jax."""

from math import gcd, lcm

from workloads.spec.decoder import LlamaConfig

TENSOR_AXIS = {"embed": 0, "q": 2, "k": 2, "v": 2, "o": 1, "gate": 2, "up": 2, "down": 1, "head": 0}
"""The axis of each parameter that tensor parallelism divides; norms are replicated."""

BLOCK = 128
"""Cache positions that one turn of the decode loop reads."""


def mesh_shape(devices: int, heads: int) -> tuple[int, int]:
    """(data, tensor): the largest tensor-parallel degree that divides devices and heads, the rest data parallel."""
    tensor = gcd(devices, heads)
    return devices // tensor, tensor


def replicated_kv_heads(config: LlamaConfig, tensor: int) -> int:
    """KV heads after repeating them so that each of `tensor` shards has its own; serving keeps them so in its cache.

    The least common multiple divides the heads, as both numbers do; repeated heads stay next to each other.
    """
    return lcm(config.kv_heads, tensor)


def divided_axis(name: str, shape: tuple[int, ...], tensor: int) -> int | None:
    """The axis of this parameter that lies over `tensor` devices. None: each has all of it, as of an axis that `tensor`
    does not divide (KV heads in training)."""
    axis = TENSOR_AXIS.get(name)
    return axis if axis is not None and shape[axis] % tensor == 0 else None


def cache_length(context: int) -> int:
    """Positions to allocate for `context` tokens: whole blocks."""
    return context if context < BLOCK else -(-context // BLOCK) * BLOCK


def cache_rows(slots: int, data: int) -> int:
    """Sequences to allocate for so many slots: as many on each device along the data axis."""
    return -(-slots // data) * data
