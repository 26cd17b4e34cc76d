"""The nearest right value to a wrong one, for error messages."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import log, prod

from workloads.spec.generations import GENERATIONS, Generation, chips_of, dims_of


def nearest(value: str, allowed: Sequence[str]) -> str | None:
    """The allowed value most like `value`, or None where none is close. Upper and lower case count as alike."""
    lowered = {word.lower(): word for word in reversed(allowed)}
    found = get_close_matches(value.lower(), list(lowered), n=1, cutoff=0.5)
    return lowered[found[0]] if found else None


def is_alias(value: str) -> bool:
    """Whether another system calls a generation so."""
    return any(value.strip().lower() in table.aliases for table in GENERATIONS.values())


def nearest_generation(value: str) -> str | None:
    """The generation that a wrong name means: another system's name for it, a name with a suffix, or a misspelling."""
    word = value.strip().lower()
    stem = re.sub(r"-\d+[a-z]*$", "", word)
    for table in GENERATIONS.values():
        if stem == table.name or word in table.aliases or stem in table.aliases:
            return table.name
    for table in GENERATIONS.values():
        if any(machine.name == word for machine in table.machine_types):
            return table.name
    return nearest(stem, list(GENERATIONS))


def suffix_of(value: str) -> int | None:
    """The number of a name such as `v5p-8`, or None for any other text."""
    found = re.fullmatch(r"(?:tpu-?)?v\d+[a-z]*-(\d+)", value.strip().lower())
    return int(found.group(1)) if found else None


def topology_of_suffix(table: Generation, number: int) -> str | None:
    """The topology that a name `<generation>-<number>` stands for, or None where no slice has that many chips."""
    chips = number / table.suffix_per_chip
    return next((topology for topology in table.topologies() if chips_of(topology) == chips), None)


def nearest_topology(value: str, table: Generation, among: Sequence[str] | None = None) -> str | None:
    """The generation's topology closest to a wrong one: the same sides in order, else the closest number of chips.

    `among` narrows the choice, for a caller that cannot take every topology of the generation.
    """
    legal = table.topologies() if among is None else among
    number = suffix_of(value)
    sides = (number // table.suffix_per_chip,) if number else tuple(int(n) for n in re.findall(r"\d{1,6}", value)[:4])
    if not sides or not all(sides):
        return None

    def distance(topology: str) -> tuple[float, float]:
        ours = dims_of(topology)
        return abs(log(chips_of(topology) / prod(sides))), _apart(sorted(sides), sorted(ours))

    alike = [t for t in legal if _without_ones(dims_of(t)) == _without_ones(sides)]
    return min(alike or legal, key=distance)


def _without_ones(sides: Iterable[int]) -> list[int]:
    return sorted(side for side in sides if side != 1)


def _apart(left: list[int], right: list[int]) -> float:
    """How unlike two sorted lists of sides are; the shorter is filled up with ones in front."""
    width = max(len(left), len(right))
    padded = ([1] * (width - len(side)) + side for side in (left, right))
    return sum(abs(log(a / b)) for a, b in zip(*padded, strict=True))
