"""Which machines start and which end. Pure.

The hosts of a multi-host TPU slice come, go and are repaired together: "Multi-host TPU slices require all instances in
the slice to be recovered or rescheduled together", https://docs.cloud.google.com/tpu/docs/failure-recovery; GKE makes
the whole node pool anew: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-auto-repair, and
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus: such a pool is immutable, all of its nodes or none.
The first of these pages has it that a single host comes again under its name, also after a preemption. Whether those of
a slice do is not public: here they never do, so that nothing takes the new slice for the old one.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from tests.rig.cloud.settings import Stock
from tests.rig.cloud.world import text
from tests.rig.gcp.values import Object, plain_object
from tests.rig.gke_side.instances import Pool, node_name

Place = tuple[str, str]
"""Machine type and zone."""


@dataclass(frozen=True)
class Steps:
    """What to do now.

    Attributes:
        gone: machines that are no more, and what remains of them in the cluster is to go.
        stop: seconds that the pods of each have.
        start: nodes.
        retire: by pool, hosts of a slice that is gone whole; the next look starts others.
        answered: by pool, machines that went as they were told and come again under their names.
        waiting: by pool, nodes for which there are no machines now.
    """

    gone: tuple[str, ...] = ()
    stop: Mapping[str, float] = field(default_factory=dict)
    start: tuple[Object, ...] = ()
    retire: Mapping[str, list[str]] = field(default_factory=dict)
    answered: Mapping[str, list[str]] = field(default_factory=dict)
    waiting: Mapping[str, list[str]] = field(default_factory=dict)


def reconcile(
    pools: Sequence[Pool],
    running: Set[str],
    begun: Mapping[str, Object],
    told: Set[str],
    stock: Sequence[Stock],
    grace_s: float,
) -> Steps:
    """What is to be done for the pools to have their machines.

    Args:
        begun: nodes whose machines were seen running.
        told: machines that are on their way out.
        stock: hosts that a zone has; what is not named has no end.
        grace_s: what the pods have whose machines go without a notice of their own.
    """
    wanted = {name for pool in pools for name in pool.names}
    gone = [name for name in dict.fromkeys([*begun, *told]) if name not in running]
    stop = dict.fromkeys(sorted(running - wanted - told), grace_s)
    start: list[Object] = []
    retire: dict[str, list[str]] = {}
    answered: dict[str, list[str]] = {}
    waiting: dict[str, list[str]] = {}
    left = _left(stock, [begun[name] for name in begun if name in running and name not in told])
    for pool in pools:
        ending = {name for name in pool.names if name in pool.notices or name in told}
        lost = {name for name in pool.names if name in gone}
        if pool.gang is not None and ending | lost:
            alive = [name for name in pool.names if name in running]
            # The first host that goes takes the others along, with as much time as it has.
            grace = max(pool.notices.values(), default=0.0) or grace_s
            stop |= {name: pool.notices.get(name, grace) for name in alive if name not in told}
            if not alive:
                retire[pool.id] = pool.names
            continue
        stop |= {name: pool.notices[name] for name in sorted(ending & running - told)}
        if ended := sorted(ending - running):
            answered[pool.id] = ended
        new = [node for node in pool.nodes if node_name(node) not in running | ending]
        for together in [new] if pool.gang is not None else [[node] for node in new]:
            if _take(left, together):
                start += together
            else:
                waiting.setdefault(pool.id, []).extend(map(node_name, together))
    return Steps(tuple(gone), stop, tuple(start), retire, answered, waiting)


def place(node: Object) -> Place:
    labels = plain_object(plain_object(node.get("metadata")).get("labels"))
    return text(labels.get("node.kubernetes.io/instance-type")), text(labels.get("topology.kubernetes.io/zone"))


def _left(stock: Sequence[Stock], there: Sequence[Object]) -> dict[Place, int]:
    left = {(one.machine_type, one.zone): one.hosts for one in stock}
    for node in there:
        if place(node) in left:
            left[place(node)] -= 1
    return left


def _take(left: dict[Place, int], nodes: Sequence[Object]) -> bool:
    """Take machines for nodes of one place, all or none."""
    if not nodes or place(nodes[0]) not in left:
        return True
    if left[place(nodes[0])] < len(nodes):
        return False
    left[place(nodes[0])] -= len(nodes)
    return True
