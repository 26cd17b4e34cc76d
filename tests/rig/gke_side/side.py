"""Google's side of a running cluster, one look after the other."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.rig.cloud.cloud import Cloud
from tests.rig.gcp.values import Object
from tests.rig.gke_side import instances
from tests.rig.gke_side.fit import Room
from tests.rig.gke_side.instances import NOTICE_S, Pool, node_name
from tests.rig.gke_side.kubernetes import Kubernetes, finished, ready, unschedulable
from tests.rig.gke_side.machines import Machines
from tests.rig.gke_side.scale_down import IDLE_S, idle, unneeded
from tests.rig.gke_side.scale_up import FIRST_BACKOFF_S, Backoff, ScaleUp, decide, groups
from tests.rig.gke_side.slices import Steps, reconcile

SCAN_S = 10.0
"""https://github.com/kubernetes/autoscaler, cluster-autoscaler/FAQ.md: `scan-interval`."""
LOOK_S = 0.5
AT_ONCE = 8


@dataclass(frozen=True)
class Times:
    """Seconds of Google's; a test makes them shorter.

    Attributes:
        grace_s: what pods have whose machines go for another reason than a preemption.
        scan_s: between two looks of the autoscaler.
        idle_s: how long a node is without pods before it goes.
        backoff_s: how long a group rests after its first failure.
    """

    grace_s: float = NOTICE_S
    scan_s: float = SCAN_S
    idle_s: float = IDLE_S
    backoff_s: float = FIRST_BACKOFF_S


class GkeSide:
    """What was seen so far; it begins with whatever runs already."""

    def __init__(
        self,
        cloud: Cloud,
        kubernetes: Kubernetes,
        machines: Machines,
        times: Times = Times(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud, self._kubernetes, self._machines = cloud, kubernetes, machines
        self._times, self._clock = times, clock
        self._begun: dict[str, Object] = {}
        self._told: dict[str, float] = {}
        self._waiting: dict[str, list[str]] = {}
        self._idle: dict[str, float] = {}
        self._backoff = Backoff(times.backoff_s)
        self._next_scan = clock()

    def look(self) -> None:
        """Look once, and do what is due."""
        self._bring_machines()
        now = self._clock()
        if now >= self._next_scan:
            self._next_scan = now + self._times.scan_s
            self._scale(now)

    def _bring_machines(self) -> None:
        pools, running = instances.pools(self._cloud), set(self._machines.running())
        for pool in pools:
            self._begun |= {node_name(node): node for node in pool.nodes if node_name(node) in running}
        stock = self._cloud.settings.stock
        steps = reconcile(pools, running, self._begun, self._told.keys(), stock, self._times.grace_s)
        self._clear(steps)
        for name in steps.stop:
            self._kubernetes.announce_end(name)
        self._told |= steps.stop
        with ThreadPoolExecutor(AT_ONCE) as threads:
            done = [threads.submit(self._machines.stop, name, grace) for name, grace in steps.stop.items()]
            done += [threads.submit(self._machines.start, node) for node in steps.start]
        for each in done:
            each.result()
        self._begun |= {node_name(node): node for node in steps.start}
        for pool_id, names in steps.retire.items():
            instances.retire(self._cloud, pool_id, names)
        for pool_id, names in steps.answered.items():
            instances.answered(self._cloud, pool_id, names)
        self._waiting = dict(steps.waiting)
        self._give_up(pools, steps)

    def _clear(self, steps: Steps) -> None:
        """Take out of the cluster what is left there of machines that are gone."""
        pods = self._kubernetes.pods() if any(self._told.get(name) for name in steps.gone) else []
        for name in steps.gone:
            # A machine that crashed, or that had no time, said nothing of its pods.
            if self._told.pop(name, 0.0) > 0:
                for pod in pods:
                    if pod["spec"].get("nodeName") == name and not finished(pod):
                        self._kubernetes.end_pod(pod)
            self._kubernetes.remove_node(name)
            self._begun.pop(name, None)

    def _give_up(self, pools: list[Pool], steps: Steps) -> None:
        """The autoscaler takes back what Compute Engine has no machines for; a fixed pool goes on waiting.

        cluster-autoscaler, core/static_autoscaler.go: `deleteCreatedNodesWithErrors`.
        """
        for pool in pools:
            for group in groups(pool):
                mine = [name for name in steps.waiting.get(pool.id, []) if f"/{group.zone}/" in self._home(pool, name)]
                lower = group.size - len(mine)
                if mine and lower >= group.least:
                    instances.retire(self._cloud, pool.id, mine)
                    instances.resize(self._cloud, pool.id, group.zone, lower)

    @staticmethod
    def _home(pool: Pool, name: str) -> str:
        found: Any = next(node for node in pool.nodes if node_name(node) == name)
        return str(found["spec"]["providerID"])

    def _scale(self, now: float) -> None:
        pools, pods, nodes = instances.pools(self._cloud), self._kubernetes.pods(), self._kubernetes.nodes()
        found = [group for pool in pools for group in groups(pool)]
        pending = [pod for pod in pods if unschedulable(pod)]
        decision = decide(pending, self._rooms(pools, pods, nodes), found, self._backoff.resting(now))
        for up in decision.ups:
            self._grow(up, now)
        for pod, message in decision.left:
            self._kubernetes.tell(pod, "Normal", "NotTriggerScaleUp", message)
        grown = {up.group.pool for up in decision.ups}
        self._idle = idle(nodes, pods, self._idle, now)
        left = [group for group in found if group.pool not in grown]
        for down in unneeded(pools, left, self._idle, now, self._times.idle_s):
            instances.retire(self._cloud, down.group.pool, down.names)
            instances.resize(self._cloud, down.group.pool, down.group.zone, down.group.size - len(down.names))

    def _grow(self, up: ScaleUp, now: float) -> None:
        group = up.group
        for pod in up.pods:
            self._kubernetes.tell(pod, "Normal", "TriggeredScaleUp", up.message)
        if why := instances.refused(self._cloud, group.pool, group.zone, up.size):
            self._backoff.fail(group.url, now)
            for pod in up.pods:
                self._kubernetes.tell(pod, "Warning", "FailedScaleUp", up.failed(why))
            return
        self._backoff.succeed(group.url)
        instances.resize(self._cloud, group.pool, group.zone, up.size)

    def _rooms(self, pools: list[Pool], pods: list[Any], nodes: list[Any]) -> list[Room]:
        """What nodes have left that are there or on their way, and stay."""
        ending = set(self._told)
        for pool in pools:
            if pool.notices or (pool.gang is not None and ending & set(pool.names)):
                ending |= set(pool.names) if pool.gang is not None else set(pool.notices)
            ending |= set(self._waiting.get(pool.id, []))
        there = {node["metadata"]["name"]: node for node in nodes if ready(node)}
        coming: dict[str, Any] = {node_name(node): node for pool in pools for node in pool.nodes}
        rooms = {name: Room.of(node) for name, node in (coming | there).items() if name not in ending}
        for pod in pods:
            room = rooms.get(pod["spec"].get("nodeName"))
            if room is not None and not finished(pod):
                room.put(pod)
        return list(rooms.values())


@contextmanager
def gke_side(
    cloud: Cloud,
    kubernetes: Kubernetes,
    machines: Machines,
    times: Times = Times(),
    clock: Callable[[], float] = time.monotonic,
    look_s: float = LOOK_S,
) -> Iterator[GkeSide]:
    """Let Google look after the cluster until the block ends; the machines are left as they are then.

    Raises:
        Exception: whatever ended a look early; there was none after it.
    """
    side, over = GkeSide(cloud, kubernetes, machines, times, clock), threading.Event()
    broken: list[Exception] = []

    def run() -> None:
        while not over.is_set():
            try:
                side.look()
            except Exception as error:
                broken.append(error)
                return
            over.wait(look_s)

    thread = threading.Thread(target=run, name="gke-side")
    thread.start()
    try:
        yield side
    finally:
        over.set()
        thread.join()
        if broken:
            raise broken[0]
