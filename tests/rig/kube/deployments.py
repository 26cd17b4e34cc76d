"""Deployments that become available: Kubernetes' own controllers, and a stand-in for what runs the pods.

The controllers of deployments, replica sets and endpoints are the real ones. What the scheduler and the kubelet would
do with a pod is played here, and only as far as a Deployment and a Service look at it: where a node takes the pod, it
is bound, Running and Ready and has an address, and where it is deleted, it ends at once.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.rig.kube.control_plane import ControlPlane, Server
from tests.rig.kube.parts import kube_controller_manager

CONTROLLERS = ("deployment-controller", "replicaset-controller", "endpoints-controller", "endpointslice-controller")
PERIOD_S = 0.2
"""How often the pods are looked at."""
REPELLING = ("NoSchedule", "NoExecute")
MERGE = {"Content-Type": "application/merge-patch+json"}


class PodsError(Exception):
    """A controller ended by itself, or the pods could not be looked at."""


@contextmanager
def running_deployments(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """Let pods run while the block does; `folder` is made, for the controllers' login and log.

    Raises:
        PodsError: a part of it broke meanwhile.
    """
    folder.mkdir()
    login = folder / "kubeconfig.json"
    login.write_text(json.dumps(plane.kubeconfig))
    flags: dict[str, str | Path] = {
        "kubeconfig": login,
        "controllers": ",".join(CONTROLLERS),
        "leader-elect": "false",
        "secure-port": "0",
    }
    controllers = Server.start(kube_controller_manager(), folder, flags)
    ended, broken = threading.Event(), list[Exception]()
    pods = threading.Thread(target=_run_pods, args=(plane, ended, broken), daemon=True)
    pods.start()
    try:
        yield
        if controllers.dead or broken:
            raise PodsError(controllers.dead or repr(broken[0]))
    finally:
        ended.set()
        pods.join()
        controllers.end()


def _run_pods(plane: ControlPlane, ended: threading.Event, broken: list[Exception]) -> None:
    try:
        with plane.client() as client:
            while not ended.wait(PERIOD_S):
                _run_waiting(client)
    except Exception as error:
        broken.append(error)


def _run_waiting(client: httpx.Client) -> None:
    """Bring every waiting pod up for which there is a node, and confirm the end of those that are being deleted."""
    pods = _items(client, "/api/v1/pods")
    waiting = [pod for pod in pods if pod["status"].get("phase") == "Pending"]
    nodes = _items(client, "/api/v1/nodes") if waiting else []
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            # A kubelet does so when the containers have ended.
            _there(client.request("DELETE", _path(pod), json={"gracePeriodSeconds": 0}))
    for pod in waiting:
        node = next((one for one in nodes if takes(one, pod)), None)
        if node is None or pod["metadata"].get("deletionTimestamp"):
            continue
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]}
            mine = {"name": pod["metadata"]["name"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": mine, "target": target}
            _there(client.post(f"{_path(pod)}/binding", json=binding))
        _there(client.patch(f"{_path(pod)}/status", json={"status": running(pod)}, headers=MERGE))


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _there(answer: httpx.Response) -> None:
    """What is asked of a pod that is gone since it was listed is no error."""
    if answer.status_code != httpx.codes.NOT_FOUND:
        answer.raise_for_status()


def takes(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the scheduler would put the pod there, by selector and taints.

    https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodeselector and
    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """
    labels, spec = node["metadata"].get("labels", {}), pod["spec"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    taints = [taint for taint in node["spec"].get("taints", []) if taint["effect"] in REPELLING]
    return all(any(_tolerates(one, taint) for one in spec.get("tolerations", [])) for taint in taints)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    same_effect = toleration.get("effect", taint["effect"]) == taint["effect"]
    same_key = toleration.get("key", taint["key"]) == taint["key"]
    exists = toleration.get("operator") == "Exists"
    return same_effect and same_key and (exists or toleration.get("value", "") == taint.get("value", ""))


def running(pod: Mapping[str, Any]) -> dict[str, object]:
    """The status of a pod whose containers run and are ready.

    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
    """
    now = pod["metadata"]["creationTimestamp"]
    first, second = bytes.fromhex(pod["metadata"]["uid"][:4])
    address = f"10.244.{first}.{second}"
    told = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    conditions = [{"type": one, "status": "True", "lastTransitionTime": now} for one in told]
    return {
        "phase": "Running",
        "conditions": conditions,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": [_ready(container, now) for container in pod["spec"]["containers"]],
    }


def _ready(container: Mapping[str, str], since: str) -> dict[str, object]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": since}},
    }


def _items(client: httpx.Client, path: str) -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path).raise_for_status().json()["items"]
    return found
