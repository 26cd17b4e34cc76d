"""How a pool is named to Ray, so that a slice of this pool can be asked for, not just one of its shape."""

POOL_PREFIX = "pool:"
POOL_UNITS = 1000
"""How much of its pool's resource each host carries. A reservation takes a small part of it."""


def pool_resource(pool: str) -> str:
    """The Ray resource that every host of a pool carries."""
    return f"{POOL_PREFIX}{pool}"
