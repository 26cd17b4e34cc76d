"""Which replica of its group a worker belongs to, and which host of it the worker is. Pure."""

from collections import defaultdict
from collections.abc import Collection
from itertools import count
from typing import Any, NamedTuple

from tests.rig.webhook.worker import KUBERAY_HOST, KUBERAY_REPLICA, REPLICA, Refusal, Worker, value_of, worker_of

Json = dict[str, Any]


class Place(NamedTuple):
    """A replica of a worker group and a host of it, both from 0."""

    replica: int
    host: int


def told_place(worker: Worker) -> Place | None:
    """What KubeRay says on the pod itself: from 1.6, not in 1.5."""
    if KUBERAY_REPLICA not in worker.labels:
        return None
    return Place(int(worker.labels[KUBERAY_REPLICA]), int(worker.labels.get(KUBERAY_HOST, 0)))


def next_place(worker: Worker, peers: Collection[Json]) -> Place:
    """The first host that is missing, of the first replica that misses one.

    Raises:
        Refusal: two pods of that replica or of one before it are the same host.
    """
    taken: defaultdict[int, list[int]] = defaultdict(list)
    for replica, host in seen_places(worker, peers):
        taken[replica].append(host)
    for replica in count():
        if len(set(taken[replica])) < len(taken[replica]):
            raise Refusal("Identical TPU_WORKER_ID assigned to multiple TPU workers in slice")
        for host in range(worker.hosts):
            if host not in taken[replica]:
                return Place(replica, host)
    raise AssertionError("there is always a further replica")


def seen_places(worker: Worker, peers: Collection[Json]) -> list[Place]:
    """Where the other pods of the worker's group are; those that are being deleted have given their places back.

    Raises:
        Refusal: a pod that the webhook has labelled says nothing of its host.
    """
    found = []
    for pod in peers:
        if "deletionTimestamp" in pod["metadata"]:
            continue
        peer = worker_of(pod)
        if peer is None or (peer.cluster, peer.group) != (worker.cluster, worker.group) or REPLICA not in peer.labels:
            continue
        number = value_of(pod, peer.containers[0], "TPU_WORKER_ID")
        if not number:
            raise Refusal("existing TPU worker missing TPU_WORKER_ID")
        replica = int(peer.labels[REPLICA].rpartition("-")[2])
        found.append(Place(replica, int(number) // len(peer.containers)))
    return found
