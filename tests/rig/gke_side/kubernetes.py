"""What Google sees and does in a cluster from outside."""

import secrets
from datetime import UTC, datetime
from typing import Any, Protocol

import httpx

Json = dict[str, Any]
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}
GONE = 404
ENDING_TAINT = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
"""https://github.com/GoogleCloudPlatform/k8s-node-termination-handler; GKE's own kubelets still have it put there."""
SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."
"""k8s.io/kubernetes/pkg/kubelet/nodeshutdown/nodeshutdown_manager.go, with reason `Terminated`."""
AUTOSCALER = "cluster-autoscaler"


class Kubernetes(Protocol):
    """The few things of a cluster that Google's side needs."""

    def nodes(self) -> list[Json]:
        """All nodes."""

    def pods(self) -> list[Json]:
        """The pods of all namespaces."""

    def announce_end(self, node: str) -> None:
        """Let no more pods onto a node whose machine is about to go; it may not be there yet."""

    def remove_node(self, node: str) -> None:
        """Take a node away; it may be gone."""

    def end_pod(self, pod: Json) -> None:
        """Write down that a pod ended with its node's shutdown; it may be gone."""

    def tell(self, pod: Json, type: str, reason: str, message: str) -> None:
        """An event of the autoscaler about a pod; one that was told before is counted."""


class Rest:
    """The API server, through a client that is logged in.

    Raises:
        httpx.HTTPError: it cannot be reached, or refuses.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._told: dict[tuple[str, str, str], tuple[str, int]] = {}

    def nodes(self) -> list[Json]:
        return self._every(NODES)

    def pods(self) -> list[Json]:
        return self._every(PODS)

    def announce_end(self, node: str) -> None:
        found = self._client.get(f"{NODES}/{node}")
        if found.status_code == GONE:
            return
        spec = found.raise_for_status().json().get("spec", {})
        taints = spec.get("taints") or []
        if all(taint["key"] != ENDING_TAINT["key"] for taint in taints):
            self._patch(f"{NODES}/{node}", {"spec": {"taints": [*taints, ENDING_TAINT]}})

    def remove_node(self, node: str) -> None:
        _accepted(self._client.delete(f"{NODES}/{node}"))

    def end_pod(self, pod: Json) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
        self._patch(path, {"status": ended(pod)})

    def tell(self, pod: Json, type: str, reason: str, message: str) -> None:
        about = pod["metadata"]
        path, key, now = f"/api/v1/namespaces/{about['namespace']}/events", (about["uid"], reason, message), _now()
        if key in self._told:
            name, count = self._told[key]
            again = {"count": count + 1, "lastTimestamp": now}
            # Events end after an hour by themselves.
            if self._client.patch(f"{path}/{name}", json=again, headers=MERGE).is_success:
                self._told[key] = name, count + 1
                return
        name = f"{about['name']}.{secrets.token_hex(8)}"
        event = {
            "metadata": {"name": name, "namespace": about["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                **{each: about[each] for each in ("name", "namespace", "uid")},
            },
            "type": type,
            "reason": reason,
            "message": message,
            "source": {"component": AUTOSCALER},
            "reportingComponent": AUTOSCALER,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        # The namespace may be on its way out, where nothing new is taken.
        if self._client.post(path, json=event).status_code not in (GONE, 403):
            self._told[key] = name, 1

    def _every(self, path: str) -> list[Json]:
        found: list[Json] = self._client.get(path).raise_for_status().json()["items"]
        return found

    def _patch(self, path: str, body: Json) -> None:
        _accepted(self._client.patch(path, json=body, headers=MERGE))


def ended(pod: Json) -> Json:
    """The status of a pod after the shutdown of its node, as the kubelet writes it."""
    disrupted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": SHUT_DOWN,
        "lastTransitionTime": _now(),
    }
    before = [each for each in pod["status"].get("conditions", []) if each["type"] != "DisruptionTarget"]
    not_ready = [{**each, "status": "False"} if "Ready" in each["type"] else each for each in before]
    return {"phase": "Failed", "reason": "Terminated", "message": SHUT_DOWN, "conditions": [*not_ready, disrupted]}


def finished(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")


def of_daemon(pod: Json) -> bool:
    """Whether a pod belongs to its node: of a daemon set, or of the kubelet's own."""
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner["kind"] in ("DaemonSet", "Node") for owner in owners)


def ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def unschedulable(pod: Json) -> bool:
    """Whether the scheduler found no node for a pod."""
    if pod["spec"].get("nodeName") or finished(pod) or pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = pod.get("status", {}).get("conditions", [])
    return any(
        (each["type"], each["status"], each.get("reason")) == ("PodScheduled", "False", "Unschedulable")
        for each in conditions
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _accepted(response: httpx.Response) -> None:
    if response.status_code != GONE:
        response.raise_for_status()
