"""How a model is laid over the devices of a slice: the mesh rule, and one PartitionSpec per parameter."""

from collections.abc import Sequence

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.spec.decoder import LlamaConfig, parameter_shapes
from workloads.spec.layout import divided_axis, mesh_shape, replicated_kv_heads

DATA, TENSOR = "data", "tensor"

__all__ = [
    "DATA",
    "TENSOR",
    "make_mesh",
    "mesh_for",
    "mesh_shape",
    "parameter_shardings",
    "parameter_specs",
    "replicated_kv_heads",
]


def make_mesh(devices: Sequence[jax.Device], data: int, tensor: int) -> Mesh:
    """A mesh with axes `data` and `tensor`; on TPU the axes follow the ICI torus."""
    return jax.make_mesh((data, tensor), (DATA, TENSOR), axis_types=(AxisType.Auto, AxisType.Auto), devices=devices)


def mesh_for(config: LlamaConfig, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """The mesh of the rule, over all devices of all processes unless some are given."""
    found = list(jax.devices() if devices is None else devices)
    return make_mesh(found, *mesh_shape(len(found), config.heads))


def parameter_specs(config: LlamaConfig, mesh: Mesh) -> dict[str, P]:
    """PartitionSpec by parameter name. An axis that `tensor` does not divide is replicated (KV heads in training)."""
    tensor = mesh.shape[TENSOR]
    specs = {}
    for name, shape in parameter_shapes(config).items():
        axis = divided_axis(name, shape, tensor)
        specs[name] = P(*(TENSOR if axis == i else None for i in range(len(shape))))  # type: ignore[no-untyped-call]
    return specs


def parameter_shardings(config: LlamaConfig, mesh: Mesh) -> dict[str, NamedSharding]:
    """`parameter_specs` on this mesh."""
    return {name: NamedSharding(mesh, spec) for name, spec in parameter_specs(config, mesh).items()}
