"""Causal attention with grouped KV heads: over a whole sequence, and over a KV cache."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from workloads.spec.layout import BLOCK


class KVCache(NamedTuple):
    """Keys and values of every layer, each `(layers, rows, length, kv_heads, head_dim)`; a row holds one sequence."""

    k: jax.Array
    v: jax.Array

    @property
    def length(self) -> int:
        return int(self.k.shape[2])


def rope(x: jax.Array, positions: jax.Array, theta: float) -> jax.Array:
    """Rotary positions, half rotation (HF layout). `x` `(batch, seq, heads, head_dim)`, `positions` `(batch, seq)`."""
    half = x.shape[-1] // 2
    frequency = theta ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = positions[..., None].astype(jnp.float32) * frequency
    cos, sin = jnp.cos(angle)[:, :, None, :], jnp.sin(angle)[:, :, None, :]
    first, second = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, positions: jax.Array) -> jax.Array:
    """Causal attention within the rows. `q` is `(batch, seq, heads, head_dim)`, `k` and `v` have `kv_heads` instead.

    A token sees those of its row whose position is not above its own. Returns the shape of `q`.
    """
    batch, seq, heads, head_dim = q.shape
    kv_heads = k.shape[2]
    grouped = q.reshape(batch, seq, kv_heads, heads // kv_heads, head_dim)
    scores = jnp.einsum("bskgh,btkh->bkgst", grouped, k, preferred_element_type=jnp.float32) * head_dim**-0.5
    seen = positions[:, None, :] <= positions[:, :, None]
    weights = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -jnp.inf), axis=-1).astype(v.dtype)
    return jnp.einsum("bkgst,btkh->bskgh", weights, v).reshape(q.shape)


def write(
    cache: KVCache, layer: jax.Array, rows: jax.Array, positions: jax.Array, k: jax.Array, v: jax.Array
) -> KVCache:
    """Store `k`, `v` `(batch, seq, kv_heads, head_dim)` at `rows (batch,)`, `positions (batch, seq)` of one layer.

    Rows and positions outside the cache are dropped: that is how padding and idle slots leave no trace.
    """
    at = (layer, rows[:, None], positions)
    return KVCache(cache.k.at[at].set(k, mode="drop"), cache.v.at[at].set(v, mode="drop"))


def blocks_in_use(cache: KVCache, positions: jax.Array) -> jax.Array:
    """How many blocks of the cache any of these positions can see; positions outside the cache do not count."""
    length = cache.length
    last = jnp.max(jnp.where(positions < length, positions, 0))
    return (last // min(BLOCK, length) + 1).astype(jnp.int32)


def attend_cache(
    q: jax.Array, cache: KVCache, layer: jax.Array, rows: jax.Array | None, positions: jax.Array, blocks: jax.Array
) -> jax.Array:
    """Attention of `q` `(batch, seq, heads, head_dim)` over one layer's cached rows, block by block.

    `rows (batch,)` names the cache row of each batch row; None means row i of the cache is row i of the batch. The loop
    ends after `blocks`. A block that a row cannot see changes its running sums by exactly nothing (weights 0, rescaling
    by 1), so a row's result does not depend on how far its batch mates have come.
    """
    batch, seq, heads, head_dim = q.shape
    _, all_rows, length, kv_heads, _ = cache.k.shape
    size = min(BLOCK, length)
    grouped = q.reshape(batch, seq, kv_heads, heads // kv_heads, head_dim)

    def block(of: jax.Array, index: jax.Array) -> jax.Array:
        part = jax.lax.dynamic_slice(
            of, (layer, 0, index * size, 0, 0), (1, all_rows, size, kv_heads, head_dim)
        ).squeeze(0)
        return part if rows is None else part.at[rows].get(mode="clip")

    def turn(index: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        highest, total, mixed = state
        scores = jnp.einsum("bskgh,btkh->bkgst", grouped, block(cache.k, index), preferred_element_type=jnp.float32)
        seen = (index * size + jnp.arange(size))[None, None, :] <= positions[:, :, None]
        scores = jnp.where(seen[:, None, None], scores * head_dim**-0.5, -jnp.inf)
        new_highest = jnp.maximum(highest, scores.max(axis=-1))
        shrink = jnp.exp(highest - new_highest)
        weights = jnp.exp(scores - new_highest[..., None])
        part = jnp.einsum("bkgst,btkh->bkgsh", weights.astype(q.dtype), block(cache.v, index)).astype(jnp.float32)
        return new_highest, total * shrink + weights.sum(axis=-1), mixed * shrink[..., None] + part

    shape = (batch, kv_heads, heads // kv_heads, seq)
    start = (jnp.full(shape, -jnp.inf), jnp.zeros(shape), jnp.zeros((*shape, head_dim)))
    _, total, mixed = jax.lax.fori_loop(0, blocks, turn, start)
    out = (mixed / total[..., None]).astype(q.dtype)
    spread: jax.Array = out.transpose(0, 3, 1, 2, 4).reshape(q.shape)
    return spread
