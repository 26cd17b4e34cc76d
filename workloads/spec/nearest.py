"""The nearest right value to a wrong one, for error messages."""

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(value: str, allowed: Sequence[str]) -> str | None:
    """The allowed value most like `value`, or None where none is close."""
    found = get_close_matches(value, allowed, n=1, cutoff=0.4)
    return found[0] if found else None
