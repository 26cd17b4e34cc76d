"""Weights from disk to devices: every device gets its own shard, and nothing is ever whole on one of them."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from workloads.models.hf import HfFolder
from workloads.models.sharding import TENSOR, parameter_shardings, replicated_kv_heads
from workloads.spec.decoder import LlamaConfig, parameter_shapes


def load_hf(
    folder: str | Path, mesh: Mesh, dtype: jax.typing.DTypeLike = jnp.float32, replicate_kv: bool = False
) -> tuple[LlamaConfig, dict[str, jax.Array]]:
    """The config and the weights in `dtype`, sharded over `mesh` (whose devices may belong to several processes).

    With `replicate_kv` KV heads are repeated until `tensor` divides them, as serving wants it; the config says so.

    Raises:
        ModelError: the folder holds no usable model.
    """
    with HfFolder(folder) as source:
        config = source.config
        if replicate_kv:
            config = config.with_kv_heads(replicated_kv_heads(config, mesh.shape[TENSOR]))
        params: dict[str, jax.Array] = {}
        for name, sharding in parameter_shardings(config, mesh).items():
            read: dict[str, np.ndarray] = {}

            def shard(
                index: tuple[slice, ...] | None, name: str = name, read: dict[str, np.ndarray] = read
            ) -> np.ndarray:
                # The devices along the data axis ask for the same part: it is read once.
                if repr(index) not in read:
                    part = source.read(name, index, config.kv_heads)
                    read[repr(index)] = np.ascontiguousarray(part).astype(dtype, copy=False)
                return read[repr(index)]

            params[name] = jax.make_array_from_callback(parameter_shapes(config)[name], sharding, shard)
        return config, params
