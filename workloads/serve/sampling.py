"""Choosing the next token of each row, inside the compiled step."""

import jax
import jax.numpy as jnp


def choose(
    logits: jax.Array,
    temperature: jax.Array,
    top_p: jax.Array,
    top_k: jax.Array,
    seeds: jax.Array,
    positions: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """One token per row, and its log probability under the model (before temperature and cuts).

    `logits` `(rows, vocab)` float32; `seeds` `(rows, 2)` uint32; all else `(rows,)`. Temperature 0 takes the first of
    the highest. `top_k` 0 is off; then `top_p` keeps the likeliest tokens until their mass reaches it, always one; 1 is
    off. The randomness of a row is a function of its seed and of `positions` (where the token will stand), so neither
    batch mates nor the slot can change it.
    """
    greedy = jnp.argmax(logits, axis=-1).astype(jnp.int32)

    def sampled() -> jax.Array:
        scaled = logits / jnp.maximum(temperature, 1e-6)[:, None]
        order = jnp.argsort(scaled, axis=-1, descending=True, stable=True)
        ranked = jnp.take_along_axis(scaled, order, axis=-1)
        rank = jnp.arange(logits.shape[-1])[None, :]
        kept = (top_k[:, None] <= 0) | (rank < top_k[:, None])
        mass = jax.nn.softmax(jnp.where(kept, ranked, -jnp.inf), axis=-1)
        above = jnp.cumsum(mass, axis=-1) - mass
        kept &= (above < top_p[:, None]) | (rank == 0) | (top_p[:, None] >= 1)
        noise = jnp.take_along_axis(jax.vmap(_noise, (0, 0, None))(seeds, positions, logits.shape[-1]), order, axis=-1)
        picked = jnp.argmax(jnp.where(kept, ranked + noise, -jnp.inf), axis=-1)
        token = jnp.take_along_axis(order, picked[:, None], axis=-1)[:, 0].astype(jnp.int32)
        return jnp.where(temperature > 0, token, greedy)

    # Sorting the vocabulary costs more than the rest of a small step: only when somebody samples.
    tokens = jax.lax.cond(jnp.any(temperature > 0), sampled, lambda: greedy)
    logprobs = jax.nn.log_softmax(logits, axis=-1)
    return tokens, jnp.take_along_axis(logprobs, tokens[:, None], axis=-1)[:, 0]


def _noise(seed: jax.Array, position: jax.Array, vocab: int) -> jax.Array:
    """Gumbel noise `(vocab,)`: adding it to logits and taking the highest samples from their softmax."""
    key = jax.random.fold_in(jax.random.wrap_key_data(seed, impl="threefry2x32"), position)
    return jax.random.gumbel(key, (vocab,), jnp.float32)
