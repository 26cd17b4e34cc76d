"""The Llama-family decoder: layers stacked on a leading axis and scanned, so compile time does not grow with depth."""

from collections.abc import Mapping
from typing import Any, overload

import jax
import jax.numpy as jnp
from flax import nnx

from workloads.models.attention import KVCache, attend, attend_cache, blocks_in_use, rope, write
from workloads.spec.decoder import LlamaConfig, ModelError, parameter_shapes

__all__ = ["KVCache", "Llama", "LlamaConfig", "ModelError", "rms_norm"]

LAYER_PARAMETERS = ("attn_norm", "q", "k", "v", "o", "mlp_norm", "gate", "up", "down")


def rms_norm(x: jax.Array, scale: jax.Array, eps: float) -> jax.Array:
    """Divide `x (..., width)` by its root mean square over the last axis, in float32; times `scale (width,)`."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + eps)
    return (wide * scale.astype(jnp.float32)).astype(x.dtype)


class Llama(nnx.Module):
    """Parameters are named as in `parameter_shapes`. Weights are kept in `param_dtype` and used in `dtype`."""

    embed: "nnx.Param[jax.Array]"
    final_norm: "nnx.Param[jax.Array]"
    head: "nnx.Param[jax.Array]"
    """Only without `tie_embeddings`."""

    def __init__(
        self,
        config: LlamaConfig,
        rngs: nnx.Rngs,
        dtype: jax.typing.DTypeLike = jnp.float32,
        param_dtype: jax.typing.DTypeLike = jnp.float32,
    ) -> None:
        """Random weights: normal of deviation 0.02, those that write into the residual stream smaller with depth."""
        self.config = config
        self.dtype = dtype
        for name, shape in parameter_shapes(config).items():
            if name.endswith("norm"):
                value = jnp.ones(shape, param_dtype)
            else:
                deviation = 0.02 * ((2 * config.layers) ** -0.5 if name in ("o", "down") else 1.0)
                value = deviation * jax.random.normal(rngs.params(), shape, param_dtype)
            setattr(self, name, nnx.Param(value))

    @classmethod
    def init(cls, config: LlamaConfig, rngs: nnx.Rngs, dtype: jax.typing.DTypeLike = jnp.float32) -> "Llama":
        """A model with random float32 weights that computes in `dtype`."""
        return cls(config, rngs, dtype)

    @classmethod
    def from_params(
        cls, config: LlamaConfig, params: Mapping[str, Any], dtype: jax.typing.DTypeLike = jnp.float32
    ) -> "Llama":
        """A model around given weights (arrays or tracers), by the names of `parameter_shapes`. Nothing is copied."""
        model = nnx.eval_shape(lambda: cls(config, nnx.Rngs(0), dtype))
        for name in parameter_shapes(config):
            setattr(model, name, nnx.Param(params[name]))
        return model

    def params(self) -> dict[str, jax.Array]:
        """The weights by name."""
        return {name: getattr(self, name)[...] for name in parameter_shapes(self.config)}

    def hidden(
        self,
        tokens: jax.Array,
        positions: jax.Array | None = None,
        cache: KVCache | None = None,
        rows: jax.Array | None = None,
    ) -> tuple[jax.Array, KVCache | None]:
        """The normed last residual stream `(batch, seq, width)` of `tokens (batch, seq)`, and the filled cache.

        `positions (batch, seq)` default to 0, 1, 2 ... With a cache, a token sees all of its cache row up to its own
        position, and `rows (batch,)` names that row (default: row i for batch row i). Positions and rows outside the
        cache are computed but not stored.
        """
        c = self.config
        batch, seq = tokens.shape
        if positions is None:
            positions = jnp.broadcast_to(jnp.arange(seq, dtype=jnp.int32), (batch, seq))
        at = jnp.arange(batch, dtype=jnp.int32) if rows is None else rows
        blocks = None if cache is None else blocks_in_use(cache, positions)

        def layer(carry: tuple[jax.Array, KVCache | None], own: dict[str, jax.Array]) -> tuple[Any, None]:
            x, kept = carry
            number = own.pop("number")
            w = {name: value.astype(self.dtype) for name, value in own.items()}
            normed = rms_norm(x, own["attn_norm"], c.norm_eps)
            q = rope(jnp.einsum("bsd,dnh->bsnh", normed, w["q"]), positions, c.rope_theta)
            k = rope(jnp.einsum("bsd,dnh->bsnh", normed, w["k"]), positions, c.rope_theta)
            v = jnp.einsum("bsd,dnh->bsnh", normed, w["v"])
            if kept is None or blocks is None:
                mixed = attend(q, k, v, positions)
            else:
                kept = write(kept, number, at, positions, k, v)
                mixed = attend_cache(q, kept, number, rows, positions, blocks)
            x = x + jnp.einsum("bsnh,nhd->bsd", mixed, w["o"])
            normed = rms_norm(x, own["mlp_norm"], c.norm_eps)
            x = x + (jax.nn.silu(normed @ w["gate"]) * (normed @ w["up"])) @ w["down"]
            return (x, kept), None

        stacked = {name: getattr(self, name)[...] for name in LAYER_PARAMETERS}
        stacked["number"] = jnp.arange(c.layers, dtype=jnp.int32)
        x = self.embed[...].astype(self.dtype).at[tokens].get(mode="clip")
        (x, cache), _ = jax.lax.scan(layer, (x, cache), stacked)
        return rms_norm(x, self.final_norm[...], c.norm_eps), cache

    def logits(self, hidden: jax.Array) -> jax.Array:
        """Scores of the next token, `(..., vocab)` float32, from `hidden (..., width)`."""
        head = self.embed if self.config.tie_embeddings else self.head
        weights = head[...].astype(self.dtype)
        return jnp.einsum("...d,vd->...v", hidden, weights, preferred_element_type=jnp.float32)

    @overload
    def __call__(self, tokens: jax.Array, positions: jax.Array | None = None, cache: None = None) -> jax.Array: ...

    @overload
    def __call__(self, tokens: jax.Array, positions: jax.Array | None, cache: KVCache) -> tuple[jax.Array, KVCache]: ...

    def __call__(
        self, tokens: jax.Array, positions: jax.Array | None = None, cache: KVCache | None = None
    ) -> tuple[jax.Array, KVCache] | jax.Array:
        """Logits `(batch, seq, vocab)` float32 of `tokens (batch, seq)`; with a cache also the new cache."""
        hidden, new_cache = self.hidden(tokens, positions, cache)
        return self.logits(hidden) if new_cache is None else (self.logits(hidden), new_cache)
