"""A checksum of a global batch that does not depend on how its rows are spread over processes or devices.

Integer sums modulo 2^32 are exact in any order, so every mesh gives the same number.
"""

from typing import Any

import numpy as np

BASES = (0x9E3779B1, 0x85EBCA6B)
MIXERS = (0xC2B2AE35, 0x27D4EB2F)
"""Odd constants of the xxHash and MurmurHash3 finalizers, one pair for each half of the checksum."""


def batch_hash(xp: Any, tokens: Any, slot: Any) -> Any:
    """Two numbers, (2,) uint32, of a batch of `tokens` (rows, width) in the places `slot` (rows,).

    `xp` is numpy or jax.numpy. The hash of a batch is the sum, modulo 2^32, of the hashes of its parts.
    """
    wide = xp.asarray(tokens).astype(xp.uint32) + xp.uint32(1)
    place = xp.asarray(slot).astype(xp.uint32) * xp.uint32(2) + xp.uint32(1)
    halves = []
    for base, mixer in zip(BASES, MIXERS, strict=True):
        powers = np.cumprod(np.full(wide.shape[-1], base, np.uint32), dtype=np.uint32)
        row = xp.sum(wide * xp.asarray(powers), axis=-1, dtype=xp.uint32)
        row = (row ^ (row >> xp.uint32(15))) * xp.uint32(mixer) * place
        row = row ^ (row >> xp.uint32(13))
        halves.append(xp.sum(row, dtype=xp.uint32))
    return xp.stack(halves)


def hash_text(halves: Any) -> str:
    """The checksum as 16 hexadecimal digits."""
    high, low = (int(half) for half in np.asarray(halves))
    return f"{high:08x}{low:08x}"
