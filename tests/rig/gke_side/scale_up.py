"""The cluster autoscaler's way up: which instance groups grow for the pods that found no node. Pure.

After https://github.com/kubernetes/autoscaler, cluster-autoscaler: core/scaleup/orchestrator (which groups are asked,
`skippedreasons.go`), processors/status/eventing_scale_up_processor.go (the events, their types and their words; nothing
is said of the others while something grows), FAQ.md (backoff: 5 minutes, then twice as long each time, 30 at most,
forgotten after 3 hours). GKE's closed copy adds `FailedScaleUp`, a warning that users quote on GitHub, and brings
multi-host TPU pools from 0 to all hosts: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus.

Simpler than theirs: the smallest machines first, one group of a pool at a time, affinity between pods is not looked at.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.rig.cloud import machines
from tests.rig.cloud.world import whole
from tests.rig.gke_side.fit import Room
from tests.rig.gke_side.instances import Pool

Json = dict[str, Any]
AT_MOST, BACKS_OFF = "max node group size reached", "in backoff after failed scale-up"
FIRST_BACKOFF_S, LONGEST_BACKOFF_S, FORGOTTEN_S = 300.0, 1800.0, 10800.0


@dataclass(frozen=True)
class Group:
    """The instance group of one zone of a pool that the autoscaler may resize.

    Attributes:
        url: how events name it.
        template: the node that it would get next.
        least: nodes that the zone keeps.
        most: nodes that the zone may have now.
    """

    pool: str
    zone: str
    url: str
    template: Json
    size: int
    least: int
    most: int
    gang: int | None
    rank: tuple[int, int]


def groups(pool: Pool) -> list[Group]:
    """The groups of a pool, none where its size is fixed.

    Queued pools grow only for requests of their own:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
    """
    limits = pool.asked.autoscaling
    if limits is None or pool.asked.queued:
        return []
    total = whole(limits.get("totalMaxNodeCount"))
    cpus, _ = machines.size(pool.asked.machine_type)
    chips = 0 if pool.asked.machine is None else pool.asked.machine.chips
    found = []
    for zone in pool.asked.zones:
        size = pool.size(zone)
        elsewhere = pool.whole_size - size
        least = whole(limits.get("minNodeCount")) or max(0, whole(limits.get("totalMinNodeCount")) - elsewhere)
        most = whole(limits.get("maxNodeCount")) or max(size, total - elsewhere)
        template: Any = pool.template(zone)
        found.append(Group(pool.id, zone, pool.group(zone), template, size, least, most, pool.gang, rank=(chips, cpus)))
    return found


@dataclass(frozen=True)
class ScaleUp:
    """A group grows for pods."""

    group: Group
    size: int
    pods: list[Json]

    @property
    def message(self) -> str:
        group = self.group
        return f"pod triggered scale-up: [{{{group.url} {group.size}->{self.size} (max: {group.most})}}]"

    def failed(self, why: str) -> str:
        return (
            f"Node scale up in zones {self.group.zone} associated with this pod failed: {why}. "
            "Pod is at risk of not being scheduled."
        )


@dataclass
class Decision:
    """What grows, and what is said of each pod for which nothing does."""

    ups: list[ScaleUp] = field(default_factory=list)
    left: list[tuple[Json, str]] = field(default_factory=list)


def decide(pods: Sequence[Json], rooms: Sequence[Room], groups: Sequence[Group], resting: Collection[str]) -> Decision:
    """Which groups grow for pods that no node takes.

    Args:
        rooms: nodes that are there or on their way, with what they have left; they fill up.
        resting: URLs of groups that back off.
    """
    homeless = [pod for pod in pods if not _put(pod, rooms)]
    made = Decision()
    grown: set[str] = set()
    for group in sorted(groups, key=lambda group: (group.rank, group.pool, group.size, group.zone)):
        if _skipped(group, resting) or group.pool in grown:
            continue
        new: list[Room] = []
        taken: list[Json] = []
        for pod in homeless:
            if _put(pod, new):
                taken.append(pod)
            elif len(new) < (group.gang or group.most - group.size) and not _empty(group).why_not(pod):
                new.append(_empty(group))
                new[-1].put(pod)
                taken.append(pod)
        if taken:
            made.ups.append(ScaleUp(group, group.gang or group.size + len(new), taken))
            grown.add(group.pool)
            homeless = [pod for pod in homeless if pod not in taken]
    if groups and not made.ups:
        made.left = [(pod, f"pod didn't trigger scale-up: {_reasons(pod, groups, resting)}") for pod in homeless]
    return made


def _skipped(group: Group, resting: Collection[str]) -> str:
    if group.url in resting:
        return BACKS_OFF
    return AT_MOST if group.size >= group.most or (group.gang is not None and group.size) else ""


def _reasons(pod: Json, groups: Sequence[Group], resting: Collection[str]) -> str:
    reasons: Counter[str] = Counter()
    for group in groups:
        skipped = _skipped(group, resting)
        reasons.update([skipped] if skipped else _empty(group).why_not(pod))
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())


def _empty(group: Group) -> Room:
    return Room.of(group.template)


def _put(pod: Json, rooms: Sequence[Room]) -> bool:
    for room in rooms:
        if not room.why_not(pod):
            room.put(pod)
            return True
    return False


class Backoff:
    """Groups that are not asked again for a while after they failed."""

    def __init__(self, first_s: float = FIRST_BACKOFF_S) -> None:
        self._first_s = first_s
        self._failures: dict[str, tuple[float, float]] = {}

    def fail(self, url: str, now: float) -> None:
        at, before = self._failures.get(url, (now, 0.0))
        if now - at > FORGOTTEN_S:
            before = 0.0
        self._failures[url] = now, min(2 * before, LONGEST_BACKOFF_S) or self._first_s

    def succeed(self, url: str) -> None:
        self._failures.pop(url, None)

    def resting(self, now: float) -> set[str]:
        return {url for url, (at, seconds) in self._failures.items() if now < at + seconds}
