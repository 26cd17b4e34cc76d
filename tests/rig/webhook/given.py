"""Places that the webhook has given to pods which the API server may not have yet."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.rig.webhook.numbering import Place, next_place, seen_places
from tests.rig.webhook.worker import Worker

Json = dict[str, Any]
Group = tuple[str, str, str]
PAUSE_S = 0.02


class GivenPlaces:
    """One pod of a worker group at a time gets its place, and the next when that one is there.

    What the API server makes of a pod after the webhook's answer is told to nobody: a pod that has not come `settle_s`
    later was refused by something else, or is gone again, and its place is free.
    """

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._guard = threading.Lock()
        self._locks: defaultdict[Group, threading.Lock] = defaultdict(threading.Lock)
        self._last: dict[Group, tuple[Place, float]] = {}

    def give(self, namespace: str, worker: Worker, peers: Callable[[], list[Json]], dry: bool) -> Place:
        """A free place; it stays taken for the pod that comes, unless this is only a trial.

        Raises:
            Refusal: the pods that are there contradict each other.
        """
        group = (namespace, worker.cluster, worker.group)
        with self._guard:
            lock = self._locks[group]
        with lock:
            found = next_place(worker, self._settled(group, worker, peers))
            if not dry:
                self._last[group] = (found, time.monotonic())
            return found

    def _settled(self, group: Group, worker: Worker, peers: Callable[[], list[Json]]) -> list[Json]:
        """The pods of the group, when the last one that got a place is among them or will not come."""
        while True:
            present = peers()
            if group not in self._last:
                return present
            place, since = self._last[group]
            if place in seen_places(worker, present) or time.monotonic() - since > self._settle_s:
                del self._last[group]
                return present
            time.sleep(PAUSE_S)
