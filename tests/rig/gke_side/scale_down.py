"""The cluster autoscaler's way down: nodes that nobody needs go. Pure.

https://docs.cloud.google.com/kubernetes-engine/docs/troubleshooting/cluster-autoscaler-scale-down: after 10 minutes. A
multi-host TPU pool goes as a whole: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus. Simpler than
theirs: only nodes without pods go, none whose pods would fit elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.rig.gke_side.instances import Pool, node_name
from tests.rig.gke_side.kubernetes import finished, of_daemon
from tests.rig.gke_side.scale_up import Group
from tests.rig.gke_side.slices import place

Json = dict[str, Any]
IDLE_S = 600.0


@dataclass(frozen=True)
class ScaleDown:
    """These nodes of a group go."""

    group: Group
    names: list[str]


def idle(nodes: Sequence[Json], pods: Sequence[Json], since: Mapping[str, float], now: float) -> dict[str, float]:
    """Since when each node has had no pods but those that belong to it; nodes that have are not named."""
    busy = {pod["spec"].get("nodeName") for pod in pods if not finished(pod) and not of_daemon(pod)}
    names = [node["metadata"]["name"] for node in nodes]
    return {name: since.get(name, now) for name in names if name not in busy}


def unneeded(
    pools: Sequence[Pool], groups: Sequence[Group], since: Mapping[str, float], now: float, idle_s: float
) -> list[ScaleDown]:
    """What goes now: down to the least of each group, a slice whole."""
    found = []
    shrunk: set[str] = set()
    by_id = {pool.id: pool for pool in pools}
    for group in groups:
        mine = [node_name(node) for node in by_id[group.pool].nodes if place(node)[1] == group.zone]
        old = [name for name in mine if name in since and now - since[name] >= idle_s]
        spare = group.size - group.least
        going = old[-spare:] if spare > 0 else []
        if group.gang is not None and len(going) < len(mine):
            going = []
        # A total least is of all zones: what goes in one of them counts for the others at the next look.
        if going and group.pool not in shrunk:
            found.append(ScaleDown(group, going))
            shrunk.add(group.pool)
    return found
