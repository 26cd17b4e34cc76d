"""Worker pods as KubeRay makes them, and as little of an API server as the webhook needs to see them."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.rig.webhook.mutation import mutated
from tests.rig.webhook.server import MUTATE, SETTLE_S, VALIDATE, WebhookServer, webhook_server
from workloads.spec import Slice

Json = dict[str, Any]
RELEASES = ("1.5", "1.6")
"""KubeRay without and with its own numbers on pods."""
TOLERATION = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}


def worker_pod(found: Slice, cluster: str = "a", group: str = "tpu", **env: str) -> Json:
    """A pod of KubeRay 1.5 when it comes to the webhook: its toleration is there, from the admission before."""
    variables = [{"name": name, "value": value} for name, value in {"JAX_PLATFORMS": "tpu,cpu", **env}.items()]
    chips = {"google.com/tpu": str(found.chips_per_host)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{cluster}-{group}-worker-",
            "namespace": "ml",
            "labels": {
                "app.kubernetes.io/name": "kuberay",
                "ray.io/cluster": cluster,
                "ray.io/group": group,
                "ray.io/node-type": "worker",
            },
        },
        "spec": {
            "initContainers": [{"name": "wait-gcs-ready", "image": "example.org/ray"}],
            "containers": [
                {
                    "name": "ray-worker",
                    "image": "example.org/ray",
                    "env": variables,
                    "resources": {"limits": dict(chips), "requests": dict(chips)},
                }
            ],
            "nodeSelector": {
                "cloud.google.com/gke-tpu-accelerator": found.gke_accelerator,
                "cloud.google.com/gke-tpu-topology": found.topology,
            },
            "tolerations": [dict(TOLERATION)],
        },
    }


def numbered(pod: Json, replica: int, host: int, several: bool) -> Json:
    """The pod as KubeRay 1.6 makes it; `several`: the slice has more than one host."""
    made = deepcopy(pod)
    labels = made["metadata"]["labels"]
    labels["ray.io/worker-group-replica-index"] = str(replica)
    if several:
        labels["ray.io/worker-group-replica-name"] = f"{labels['ray.io/group']}-{'fcks8' if replica == 0 else 'zzq4m'}"
        labels["ray.io/replica-host-index"] = str(host)
    return made


def ray_cluster(pod: Json, hosts: int, group: str = "tpu") -> Json:
    """A RayCluster with one group of such workers."""
    template = {"spec": deepcopy(pod["spec"])}
    head = {"template": {"spec": {"containers": [{"name": "ray-head", "image": "example.org/ray"}]}}}
    counts = {"replicas": 1, "minReplicas": 1, "maxReplicas": 1, "numOfHosts": hosts}
    groups = [{"groupName": group, "rayStartParams": {}, "template": template, **counts}]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "a", "namespace": "ml"},
        "spec": {"headGroupSpec": {**head, "rayStartParams": {}}, "workerGroupSpecs": groups},
    }


def patched(document: Json, operations: list[Json]) -> Json:
    """What RFC 6902's `add` and `replace` make of it."""
    made = deepcopy(document)
    for operation in operations:
        *parents, last = operation["path"].removeprefix("/").split("/")
        at: Any = made
        for key in parents:
            at = at[int(key) if isinstance(at, list) else key]
        if not isinstance(at, list):
            assert operation["op"] == "add" or last in at
            at[last] = operation["value"]
        elif last == "-":
            at.append(operation["value"])
        else:
            assert operation["op"] == "replace"
            at[int(last)] = operation["value"]
    return made


class Pods:
    """The pods that there are, each with its name; `mutate` is the webhook."""

    def __init__(self) -> None:
        self.there: dict[str, Json] = {}
        self.listed: list[str] = []
        self.mutate: Callable[[Json], list[Json]] = lambda pod: mutated(pod, list(self.there.values()))
        self._guard, self._names = threading.Lock(), count()

    def make(self, pod: Json) -> Json:
        """Admit the pod and keep it."""
        made = patched(pod, self.mutate(pod))
        with self._guard:
            name = made["metadata"]["name"] = f"{made['metadata']['generateName']}{next(self._names)}"
            self.there[name] = made
        return made

    def make_group(self, release: str, pod: Json, hosts: int, replicas: int = 1) -> list[Json]:
        """All pods of a worker group, one after the other, as this KubeRay makes them."""
        places = [(replica, host) for replica in range(replicas) for host in range(hosts)]
        if release == "1.5":
            return [self.make(pod) for _ in places]
        return [self.make(numbered(pod, *place, several=hosts > 1)) for place in places]

    def every(self, path: str) -> list[Json]:
        """`ControlPlane.every`, of pods by equal labels."""
        url = urlsplit(path)
        _, _, _, _, namespace, kind = url.path.split("/")
        assert kind == "pods"
        wanted = dict(pair.split("=") for pair in parse_qs(url.query)["labelSelector"][0].split(","))
        with self._guard:
            self.listed.append(path)
            return [
                deepcopy(pod)
                for pod in self.there.values()
                if pod["metadata"]["namespace"] == namespace and wanted.items() <= pod["metadata"]["labels"].items()
            ]


class Asking:
    """The API server's side of a webhook that runs."""

    def __init__(self, server: WebhookServer, client: httpx.Client) -> None:
        self.server, self.client = server, client

    def review(self, path: str, thing: Json, **more: object) -> httpx.Response:
        request = {
            "uid": "705ab4f5",
            "kind": {"group": "", "version": "v1", "kind": thing["kind"]},
            "namespace": thing["metadata"]["namespace"],
            "operation": "CREATE",
            "object": thing,
            **more,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return self.client.post(path, json=body)

    def mutate(self, pod: Json, **more: object) -> list[Json]:
        """The patch of a pod that is admitted."""
        answered = self.review(MUTATE, pod, **more).raise_for_status().json()
        assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response = answered["response"]
        assert (response["uid"], response["allowed"]) == ("705ab4f5", True)
        if "patch" not in response:
            return []
        assert response["patchType"] == "JSONPatch"
        found: list[Json] = json.loads(base64.b64decode(response["patch"]))
        return found

    def validate(self, cluster: Json) -> httpx.Response:
        return self.review(VALIDATE, cluster)


@contextmanager
def asked(pods: Pods, settle_s: float = SETTLE_S) -> Iterator[Asking]:
    """A webhook over these pods, asked over HTTPS with its certificate as the only authority."""
    with webhook_server(pods.every, settle_s=settle_s) as (server, certificate):
        trust = ssl.create_default_context(cafile=certificate)
        url = f"https://{server.address}:{server.port}"
        with httpx.Client(base_url=url, verify=trust, trust_env=False, timeout=60) as client:
            asking = Asking(server, client)
            pods.mutate = asking.mutate
            yield asking


def env(pod: Json, container: int = 0) -> dict[str, str]:
    """A container's variables; where a value comes from elsewhere, the field it is taken from."""
    return {
        one["name"]: one["value"] if "value" in one else one["valueFrom"]["fieldRef"]["fieldPath"]
        for one in pod["spec"]["containers"][container].get("env", [])
    }
