"""What the webhook writes into the pod of a TPU worker, as a JSON patch (RFC 6902). Pure."""

from collections.abc import Collection, Iterator
from typing import Any

from tests.rig.webhook.numbering import Place, next_place, told_place
from tests.rig.webhook.worker import APP, CLUSTER, KUBERAY, KUBERAY_NAME, REPLICA, Worker, value_of, worker_of

Json = dict[str, Any]
HOST_IP, DEVICE_PLUGIN = "TPU_DEVICE_PLUGIN_HOST_IP", "TPU_DEVICE_PLUGIN_ADDR"
ENV = (
    *("TPU_WORKER_ID", "TPU_NAME", "TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES", "TPU_PROCESS_PORT"),
    *("MEGASCALE_SLICE_ID", "MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_PORT", HOST_IP, DEVICE_PLUGIN),
)
PARTS = frozenset({"hostname", "subdomain", "affinity", REPLICA, *ENV})
"""What can be left out on purpose. Under KubeRay 1.5 the webhook reads its own numbers from `replicaIndex` and
TPU_WORKER_ID: without one of these it has no further pod of a slice to number rightly."""
DEFAULTS = {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
"""Values that are overwritten; any other that the user set stays."""
PROCESS_PORT, MEGASCALE_PORT, METRICS_PORT = 8471, 8081, 2112
LONGEST_SERVICE = 50
NODE_POOL = "cloud.google.com/gke-nodepool"


def mutated(pod: Json, peers: Collection[Json], without: Collection[str] = ()) -> list[Json]:
    """The patch of a pod that is being made; `peers` are the pods of its RayCluster that there are.

    `without` names what is left out, of `PARTS`.

    Raises:
        Refusal: the pod is not admitted.
    """
    worker = worker_to_patch(pod)
    if worker is None:
        return []
    return patch(pod, worker, told_place(worker) or next_place(worker, peers), without)


def worker_to_patch(pod: Json) -> Worker | None:
    """The worker, where the pod is KubeRay's and asks for chips.

    Raises:
        Refusal: the pod is not admitted.
    """
    return worker_of(pod) if pod["metadata"].get("labels", {}).get(APP) == KUBERAY else None


def patch(pod: Json, worker: Worker, place: Place, without: Collection[str] = ()) -> list[Json]:
    """The patch of a worker at its place."""
    found: list[Json] = []
    replica, several = f"{worker.group}-{place.replica}", worker.hosts > 1
    if KUBERAY_NAME not in worker.labels and REPLICA not in without:
        found.append(_add(f"/metadata/labels/{REPLICA}", replica))
    if several:
        spec = {
            "hostname": f"{replica}-{place.host}",
            "subdomain": headless_service(worker.cluster),
            # `add` replaces what is there: an affinity of the user's is lost.
            "affinity": affinity(worker, replica),
        }
        found += [_add(f"/spec/{key}", value) for key, value in spec.items() if key not in without]
    for number, container in enumerate(worker.containers):
        wanted = [one for one in _env(pod, worker, place, number) if one["name"] not in without]
        found += _with_env(pod, container, wanted)
    return found


def headless_service(cluster: str) -> str:
    """The service that the hosts of a slice find each other by, as the webhook writes its name.

    It shortens names as KubeRay shortens those of pods: the *last* 50 characters stay, and a digit or a punctuation
    mark in front becomes an r. KubeRay itself names this service in full, so that a RayCluster's name of more than 41
    characters leads nowhere. https://github.com/ray-project/kuberay/blob/v1.5.1/ray-operator/controllers/ray/utils/util.go
    """
    name = f"{cluster}-headless"[-LONGEST_SERVICE:]
    return name if name[0].isalpha() else f"r{name[1:]}"


def affinity(worker: Worker, replica: str) -> Json:
    """A replica is on one node pool with its own pods alone."""
    own = KUBERAY_NAME if KUBERAY_NAME in worker.labels else REPLICA
    name = worker.labels.get(KUBERAY_NAME, replica)
    together = [_is(CLUSTER, "In", worker.cluster), _is(own, "In", name)]
    # `NotIn` alone is also true of pods without the label.
    sisters = [_is(CLUSTER, "In", worker.cluster), _is(own, "Exists"), _is(own, "NotIn", name)]
    strangers = [_is(CLUSTER, "Exists"), _is(CLUSTER, "NotIn", worker.cluster)]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "podAffinity": {required: [_on_pool(together)]},
        "podAntiAffinity": {required: [_on_pool(sisters), _on_pool(strangers)]},
    }


def _is(key: str, operator: str, *values: str) -> Json:
    found: Json = {"key": key, "operator": operator}
    return {**found, "values": list(values)} if values else found


def _on_pool(expressions: list[Json]) -> Json:
    return {"labelSelector": {"matchExpressions": expressions}, "topologyKey": NODE_POOL}


def _env(pod: Json, worker: Worker, place: Place, number: int) -> Iterator[Json]:
    """The variables of the `number`th container that has chips. More than one in a pod is v7x's only, and how their
    ports and numbers go is documented but was not observed."""
    processes, service = len(worker.containers), headless_service(worker.cluster)
    yield _variable("TPU_WORKER_ID", place.host * processes + number)
    yield _variable("TPU_NAME", f"{worker.group}-{place.replica}")
    if worker.hosts > 1:
        names = [f"{worker.group}-{place.replica}-{host}.{service}" for host in range(worker.hosts)]
        yield _variable("TPU_WORKER_HOSTNAMES", ",".join(names))
        if worker.v7x:
            addresses = [f"{name}:{PROCESS_PORT + process}" for name in names for process in range(processes)]
            yield _variable("TPU_PROCESS_ADDRESSES", ",".join(addresses))
            yield _variable("TPU_PROCESS_PORT", PROCESS_PORT + number)
    if value_of(pod, worker.containers[number], "MEGASCALE_NUM_SLICES") is not None:
        yield _variable("MEGASCALE_SLICE_ID", place.replica)
        yield _variable("MEGASCALE_COORDINATOR_ADDRESS", f"{worker.group}-0-0.{service}")
        yield _variable("MEGASCALE_PORT", MEGASCALE_PORT)
    yield {"name": HOST_IP, "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    # Kubernetes puts in only the values of variables that stand before.
    yield _variable(DEVICE_PLUGIN, f"$({HOST_IP}):{METRICS_PORT}")


def _variable(name: str, value: str | int) -> Json:
    return {"name": name, "value": str(value)}


def _with_env(pod: Json, container: int, wanted: list[Json]) -> Iterator[Json]:
    path = f"/spec/containers/{container}/env"
    present = pod["spec"]["containers"][container].get("env", [])
    places = {variable["name"]: place for place, variable in enumerate(present)}
    new = []
    for variable in wanted:
        name = variable["name"]
        if name not in places:
            new.append(variable)
        elif value_of(pod, container, name) == DEFAULTS.get(name):
            yield {"op": "replace", "path": f"{path}/{places[name]}", "value": variable}
    if present:
        yield from (_add(f"{path}/-", variable) for variable in new)
    elif new:
        yield _add(path, new)


def _add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": value}
