"""Rules about replicas that come and go: which services can have them."""

from collections.abc import Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.problems import Problem
from infra.stack.rules_engines import engine_kind
from infra.stack.rules_pools import Pool
from infra.stack.translate import Entry
from workloads.spec import ReplicaCount, ServiceSpec


def replica_problems(
    entries: Sequence[Entry[ServiceSpec]],
    pools: Mapping[str, Pool],
    platform: Entry[LocalPlatform | GkePlatform] | None,
) -> Iterator[Problem]:
    """Everything that is wrong with ranges of replicas. At most one problem for each service.

    How many slices a range may come to is told with the other services of its pool (`rules_capacity`).
    """
    gke = platform is not None and isinstance(platform.spec, GkePlatform)
    for entry in entries:
        if entry.spec is None or not entry.sound("replicas") or not isinstance(entry.raw.get("replicas"), dict):
            continue
        count, pool = entry.spec.replicas, pools.get(entry.text("pool") or "")
        if count.min > count.max:
            yield _turned(entry, count)
        elif not count.moves:
            yield from _idle_alone(entry, count)
        elif engine_kind(entry) == "app":
            yield _number_instead(entry, count, "how many replicas there are is said by the application's own code")
        elif gke and pool is not None and pool.slice is not None and pool.slice.multi_host:
            shape = pool.slice
            yield _number_instead(
                entry,
                count,
                f"a {shape.generation} slice {shape.topology} has {shape.hosts} hosts, and Ray's autoscaler counts "
                "hosts: it makes no such slice for the one host that a waiting replica asks for",
            )


def _turned(entry: Entry[ServiceSpec], count: ReplicaCount) -> Problem:
    wrote_min = entry.wrote("replicas.min")
    return Problem(
        key=f"{entry.key}.replicas.{'min' if wrote_min else 'max'}",
        value=count.min if wrote_min else count.max,
        reason=f"more replicas at least than at most ({count.max})",
        allowed=(f"1 to {count.max}",),
        nearest=count.max,
    )


def _idle_alone(entry: Entry[ServiceSpec], count: ReplicaCount) -> Iterator[Problem]:
    if entry.wrote("replicas.idle_s"):
        yield Problem(
            key=f"{entry.key}.replicas.idle_s",
            value=count.idle_s,
            reason=f"min and max are both {count.max}: no replica ever goes",
            allowed=("only where max is above min",),
        )


def _number_instead(entry: Entry[ServiceSpec], count: ReplicaCount, why: str) -> Problem:
    written = entry.raw["replicas"]
    return Problem(
        key=f"{entry.key}.replicas", value=written, reason=why, allowed=("a whole number",), nearest=count.max
    )
