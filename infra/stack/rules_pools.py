"""Rules about pools: the shape exists, Ray takes it, the name is its own, somebody uses it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from infra.stack.model import PoolSpec
from infra.stack.problems import Problem
from infra.stack.rules_modes import keeps_none, mode_problems
from infra.stack.translate import Entry
from workloads.spec import Slice, SliceError, resolve_slice, slice_mistakes
from workloads.spec.generations import GENERATIONS
from workloads.spec.nearest import nearest_topology


@dataclass(frozen=True)
class Pool:
    """What other rules know of a pool; a part that is wrong is None, so that they keep silent about it."""

    name: str
    key: str
    slice: Slice | None
    slices: int | None


def pools_by_name(entries: Iterable[Entry[PoolSpec]]) -> dict[str, Pool]:
    """The pools that services and jobs may name, also those with mistakes in them; the first of two of one name."""
    pools: dict[str, Pool] = {}
    for entry in entries:
        name = entry.text("name")
        if name is not None and name not in pools:
            pools[name] = Pool(name, entry.key, _slice(entry), _most_slices(entry))
    return pools


def pool_problems(entries: Sequence[Entry[PoolSpec]], used: Iterable[str | None]) -> Iterator[Problem]:
    """Everything that is wrong with the pools beyond their single keys. `used` are the names that others mean."""
    for entry in entries:
        yield from single_pool_problems(entry)
    yield from same_names(entries, "pool")
    known = set(used)
    for entry in entries:
        name = entry.text("name")
        if name is not None and name not in known:
            known.add(name)
            count = entry.raw.get("slices")
            if isinstance(count, dict) and count.get("min") == 0:
                continue  # For `tpu-ray submit`: a slice comes when somebody asks for one.
            yield Problem(
                key=f"{entry.key}.name",
                value=name,
                reason="no service and no job uses this pool: its slices would be billed for nothing; for `tpu-ray "
                "submit` alone, let it keep none: `slices: {min: 0, max: 1}`",
            )


def single_pool_problems(entry: Entry[PoolSpec]) -> Iterator[Problem]:
    """Everything that is wrong with a pool, whatever else the stack has."""
    yield from _shape(entry)
    if not keeps_none(entry):
        yield from _count(entry)
    yield from mode_problems(entry)


def same_names(entries: Sequence[Entry[Any]], what: str) -> Iterator[Problem]:
    """A name that two pools, two services or two jobs have."""
    first: dict[str, str] = {}
    names = {entry.text("name") for entry in entries}
    for entry in entries:
        name = entry.text("name")
        if name is None:
            continue
        if name in first:
            # Short enough for what any name may be.
            ends = (f"-{n}" for n in range(2, len(entries) + 3))
            free = next(made for end in ends if (made := name[: 35 - len(end)].rstrip("-") + end) not in names)
            reason = f"{first[name]} has this name too; every {what} has its own"
            yield Problem(key=f"{entry.key}.name", value=name, reason=reason, nearest=free)
        else:
            first[name] = f"{entry.key}.name"


_FOLLOWS = re.compile(
    r"(initial|num|number)?(of)?(hosts?|nodes?|chips?|tpus?)(count|per(host|vm|node|pod|slice|replica))?"
)
"""What others ask of a pool and a slice tells, without dashes."""


def said_once(entry: Entry[PoolSpec], problems: Sequence[Problem]) -> list[Problem]:
    """The problems of reading a pool, where unknown keys for what follows from its slice say what follows."""
    shape = _slice(entry)
    if shape is None:
        return list(problems)
    hosts = "1 host" if shape.hosts == 1 else f"{shape.hosts} hosts"
    reason = (
        f"this is not asked: a {shape.generation} slice {shape.topology} is {hosts} with {shape.chips_per_host} of its "
        f"{shape.chips} chips each; leave the key out"
    )
    unknown = {f"{entry.key}.{name}" for name in entry.raw if _FOLLOWS.fullmatch(re.sub("[-_]", "", name).lower())}
    return [
        problem.model_copy(update={"reason": reason, "allowed": (), "nearest": None})
        if problem.key in unknown
        else problem
        for problem in problems
    ]


def _words(entry: Entry[PoolSpec]) -> tuple[str, str, str | None]:
    return entry.text("generation") or "", entry.text("topology") or "", entry.text("machine_type")


def _slice(entry: Entry[PoolSpec]) -> Slice | None:
    try:
        return resolve_slice(*_words(entry))
    except SliceError:
        return None


def _most_slices(entry: Entry[PoolSpec]) -> int | None:
    count = entry.raw.get("slices", 1)
    count = count.get("max") if isinstance(count, dict) else count
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None


def _shape(entry: Entry[PoolSpec]) -> Iterator[Problem]:
    generation, topology, machine_type = _words(entry)
    if not generation:
        return
    for mistake in slice_mistakes(generation, topology, machine_type):
        if entry.text(mistake.key) is not None:
            yield Problem(
                key=f"{entry.key}.{mistake.key}",
                value=mistake.value,
                reason=mistake.reason,
                allowed=mistake.allowed,
                nearest=mistake.nearest,
            )
    found = _slice(entry)
    if found is not None and not found.ray_accepts:
        table = GENERATIONS[generation]
        taken = tuple(t for t in table.topologies() if table.ray_accepts(t))
        yield Problem(
            key=f"{entry.key}.topology",
            value=topology,
            reason=f"GKE makes a {generation} slice {topology}, but Ray reserves none of this shape",
            allowed=taken,
            nearest=nearest_topology(topology, table, taken),
        )


def _count(entry: Entry[PoolSpec]) -> Iterator[Problem]:
    count = entry.raw.get("slices")
    least, most = (count.get("min"), count.get("max")) if isinstance(count, dict) else (None, None)
    if isinstance(least, int) and isinstance(most, int) and least > most > 0:
        yield Problem(
            key=f"{entry.key}.slices.min",
            value=least,
            reason=f"more slices at least than at most ({most})",
            allowed=(f"0 to {most}",),
            nearest=most,
        )
