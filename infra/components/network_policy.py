"""Who reaches the pods of one service or job."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

DASHBOARD, SERVE, METRICS = 8265, 8000, 8080
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that Kubernetes itself gives each namespace."""

KUBERAY: tuple[dict[str, object], ...] = (
    # GKE's add-on runs beside the control plane and comes through the API server, as `kubectl` does: its connections
    # into the cluster end in agents of this namespace.
    {"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: "kube-system"}}},
    # An operator of one's own, from KubeRay's chart and from its kustomization.
    {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}}},
    {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}}},
)
"""Where KubeRay calls the dashboard from, to deploy applications and to follow runs."""


class NetworkPolicyArgs(TypedDict):
    """Whose pods, and who else may come."""

    namespace: str
    object_name: str
    """The policy's name."""
    pods: Mapping[str, str]
    """Labels of the pods: of all Ray clusters of the service or job, and of a run's submitter."""
    serves: bool
    """Whether port 8000 is open to everybody."""
    control_plane: str | None
    """Address range of the control plane, where it is known."""
    metrics_from: Sequence[str]
    """Namespaces that may read metrics."""


class NetworkPolicy(pulumi.ComponentResource):
    """Lets these pods be reached by each other alone, on all ports: so nothing else comes to Ray's GCS, its client, its
    jobs or its workers. The exceptions are the model's answers, KubeRay, and who reads metrics.

    A node's own kubelet always comes through, and so do its probes and `kubectl port-forward`. Whatever the pods reach
    outside stays open. Without a network plugin that heeds policies, this one changes nothing.
    """

    def __init__(self, name: str, args: NetworkPolicyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:NetworkPolicy", name, {}, opts)
        k8s.networking.v1.NetworkPolicy(
            name,
            metadata={"name": args["object_name"], "namespace": args["namespace"]},
            spec=policy_spec(args),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def policy_spec(args: NetworkPolicyArgs) -> dict[str, object]:
    """The spec of the Kubernetes object."""
    mine = {"podSelector": {"matchLabels": dict(args["pods"])}}
    control_plane = [{"ipBlock": {"cidr": args["control_plane"]}}] if args["control_plane"] else []
    ingress: list[dict[str, object]] = [
        {"from": [mine]},
        {"from": [*KUBERAY, *control_plane], "ports": [_port(DASHBOARD)]},
    ]
    if args["serves"]:
        ingress.append({"ports": [_port(SERVE)]})
    if args["metrics_from"]:
        readers = [{"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: one}}} for one in args["metrics_from"]]
        ingress.append({"from": readers, "ports": [_port(METRICS)]})
    return {**mine, "policyTypes": ["Ingress"], "ingress": ingress}


def _port(number: int) -> dict[str, object]:
    return {"protocol": "TCP", "port": number}
