"""The compiled programs of the bundled engine: one per prefill bucket and one decode step, over a slice's mesh."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from workloads.models.attention import KVCache
from workloads.models.llama import Llama, LlamaConfig
from workloads.models.sharding import DATA, TENSOR
from workloads.serve.sampling import choose
from workloads.serve.schedule import Request
from workloads.spec.layout import cache_length, cache_rows

Params = dict[str, jax.Array]
Chosen = tuple[np.ndarray, np.ndarray]
"""Tokens (int32) and their log probabilities (float32), `(rows,)` each."""


class _Compiles:
    """Counts the programs that XLA compiles in this process, whoever asks for them."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def _heard(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        self.count += event == "/jax/core/compile/backend_compile_duration"


compiles = _Compiles()


class Programs:
    """Weights and KV cache on the devices, and what runs on them. All hosts make the same calls in the same order."""

    def __init__(
        self,
        config: LlamaConfig,
        params: Params,
        mesh: Mesh,
        slots: int,
        context: int,
        buckets: Sequence[int],
        dtype: jax.typing.DTypeLike,
    ) -> None:
        """Allocate the cache: `slots` rows (rounded up to the data axis) of `context` tokens (rounded up to blocks)."""
        self.config, self.mesh, self.dtype, self.buckets = config, mesh, dtype, tuple(buckets)
        self._params = params
        self._rows = cache_rows(slots, mesh.shape[DATA])
        self._length = cache_length(context)
        self._everywhere = self._sharding()
        self._by_row = self._sharding(DATA)
        shape = (config.layers, self._rows, self._length, config.kv_heads, config.head_dim)
        heads = TENSOR if config.kv_heads % mesh.shape[TENSOR] == 0 else None
        cached = self._sharding(None, DATA, None, heads, None)
        empty = jax.jit(lambda: KVCache(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)), out_shardings=cached)
        self._cache: KVCache = empty()
        results = (cached, self._everywhere, self._everywhere)
        self._jit: Callable[[Callable[..., Any]], Any] = partial(jax.jit, donate_argnums=1, out_shardings=results)
        self._compiled: dict[int, Any] = {}

    def _sharding(self, *axes: str | None) -> NamedSharding:
        return NamedSharding(self.mesh, P(*axes))  # type: ignore[no-untyped-call]

    def compile(self) -> None:
        """Compile every program and run each once; nothing compiles after this. The cache's contents do not change."""
        for bucket in self.buckets:
            self.prefill((), 0, bucket, None)
        self.decode(())

    def prefill(self, tokens: Sequence[int], start: int, bucket: int, request: Request | None) -> Chosen:
        """Write the keys of `tokens` at `start` of the request's slot, and choose the token that follows them."""
        padded = np.zeros((1, bucket), np.int32)
        padded[0, : len(tokens)] = tokens
        place = np.array([self._rows if request is None else request.slot, start, len(tokens)], np.int32)
        return self._run(bucket, self._prefill, padded, place, *_choices(1, [] if request is None else [(0, request)]))

    def decode(self, requests: Sequence[Request]) -> Chosen:
        """Feed each request's last token and choose the next; row i of the result belongs to slot i."""
        # An idle slot's token stands outside the cache, so that it leaves no trace there.
        fed = np.stack([np.zeros(self._rows, np.int32), np.full(self._rows, self._length, np.int32)])
        for request in requests:
            fed[:, request.slot] = request.last_token, request.position
        return self._run(0, self._decode, fed, *_choices(self._rows, [(r.slot, r) for r in requests]))

    def _run(self, key: int, program: Callable[..., Any], *arrays: np.ndarray) -> Chosen:
        inputs = [self._put(array) for array in arrays]
        if key not in self._compiled:
            self._compiled[key] = self._jit(program).lower(self._params, self._cache, *inputs).compile()
        self._cache, tokens, logprobs = self._compiled[key](self._params, self._cache, *inputs)
        return np.asarray(tokens), np.asarray(logprobs)

    def _put(self, array: np.ndarray) -> jax.Array:
        """The same values on every device; each process puts its own copy."""
        return jax.make_array_from_callback(array.shape, self._everywhere, lambda index: array[index])

    def _prefill(
        self, params: Params, cache: KVCache, tokens: jax.Array, place: jax.Array, ints: jax.Array, floats: jax.Array
    ) -> tuple[KVCache, jax.Array, jax.Array]:
        slot, start, count = place
        at = jnp.arange(tokens.shape[1], dtype=jnp.int32)
        positions = jnp.where(at < count, start + at, self._length)[None]
        model = Llama.from_params(self.config, params, self.dtype)
        hidden, filled = model.hidden(tokens, positions, cache, slot[None])
        last = jax.lax.dynamic_index_in_dim(hidden, jnp.maximum(count - 1, 0), axis=1, keepdims=False)
        logits = _constrain(model.logits(last), self._everywhere)
        assert filled is not None
        return filled, *_choose(logits, ints, floats, (start + count)[None])

    def _decode(
        self, params: Params, cache: KVCache, fed: jax.Array, ints: jax.Array, floats: jax.Array
    ) -> tuple[KVCache, jax.Array, jax.Array]:
        tokens, positions = (_constrain(part, self._by_row)[:, None] for part in fed)
        model = Llama.from_params(self.config, params, self.dtype)
        hidden, filled = model.hidden(tokens, positions, cache)
        logits = _constrain(model.logits(hidden[:, 0]), self._by_row)
        assert filled is not None
        return filled, *_choose(logits, ints, floats, positions[:, 0] + 1)


def _choices(rows: int, requests: Sequence[tuple[int, Request]]) -> tuple[np.ndarray, np.ndarray]:
    """How rows sample: uint32 `(3, rows)` top_k and the seed's halves; float32 `(2, rows)` temperature and top_p."""
    ints, floats = np.zeros((3, rows), np.uint32), np.zeros((2, rows), np.float32)
    for row, request in requests:
        s = request.sampling
        ints[:, row] = s.top_k, (s.seed >> 32) & 0xFFFFFFFF, s.seed & 0xFFFFFFFF
        floats[:, row] = s.temperature, s.top_p
    return ints, floats


def _constrain(x: jax.Array, sharding: NamedSharding) -> jax.Array:
    constrained: jax.Array = jax.lax.with_sharding_constraint(x, sharding)  # type: ignore[no-untyped-call]
    return constrained


def _choose(logits: jax.Array, ints: jax.Array, floats: jax.Array, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    return choose(logits, floats[0], floats[1], ints[0].astype(jnp.int32), ints[1:].T, positions)
