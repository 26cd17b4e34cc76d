"""How a model is laid over the devices of a slice: the mesh rule, and one PartitionSpec per parameter."""

from collections.abc import Sequence
from math import lcm

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.models.config import LlamaConfig, parameter_shapes

DATA, TENSOR = "data", "tensor"

TENSOR_AXIS = {"embed": 0, "q": 2, "k": 2, "v": 2, "o": 1, "gate": 2, "up": 2, "down": 1, "head": 0}
"""The axis of each parameter that tensor parallelism divides; norms are replicated."""


def mesh_shape(devices: int, heads: int) -> tuple[int, int]:
    """(data, tensor): the largest tensor-parallel degree that divides devices and heads, the rest data parallel."""
    tensor = max(degree for degree in range(1, devices + 1) if devices % degree == 0 and heads % degree == 0)
    return devices // tensor, tensor


def make_mesh(devices: Sequence[jax.Device], data: int, tensor: int) -> Mesh:
    """A mesh with axes `data` and `tensor`; on TPU the axes follow the ICI torus."""
    return jax.make_mesh((data, tensor), (DATA, TENSOR), axis_types=(AxisType.Auto, AxisType.Auto), devices=devices)


def mesh_for(config: LlamaConfig, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """The mesh of the rule, over all devices of all processes unless some are given."""
    found = list(jax.devices() if devices is None else devices)
    return make_mesh(found, *mesh_shape(len(found), config.heads))


def replicated_kv_heads(config: LlamaConfig, tensor: int) -> int:
    """KV heads after repeating them so that each of `tensor` shards has its own; serving keeps them so in its cache.

    The least common multiple divides the heads, as both numbers do; repeated heads stay next to each other.
    """
    return lcm(config.kv_heads, tensor)


def parameter_specs(config: LlamaConfig, mesh: Mesh) -> dict[str, P]:
    """PartitionSpec by parameter name. An axis that `tensor` does not divide is replicated (KV heads in training)."""
    tensor = mesh.shape[TENSOR]
    specs = {}
    for name, shape in parameter_shapes(config).items():
        axis = TENSOR_AXIS.get(name)
        divided = axis is not None and shape[axis] % tensor == 0
        specs[name] = P(*(TENSOR if divided and axis == i else None for i in range(len(shape))))  # type: ignore[no-untyped-call]
    return specs


def parameter_shardings(config: LlamaConfig, mesh: Mesh) -> dict[str, NamedSharding]:
    """`parameter_specs` on this mesh."""
    return {name: NamedSharding(mesh, spec) for name, spec in parameter_specs(config, mesh).items()}
