"""How many pods of a service have to stay while nodes are drained."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s


class DisruptionBudgetArgs(TypedDict):
    """Whose pods, and how many there are."""

    namespace: str
    object_name: str
    """The budget's name."""
    pods: Mapping[str, str]
    """Their labels."""
    count: int
    """All of them: the head and each host of each slice."""


class DisruptionBudget(pulumi.ComponentResource):
    """Lets no pod of the service be evicted while there is another way.

    A slice goes as a unit: one evicted host costs all of it, and its service what the slice answered. A budget counts
    pods and knows no slices, so any number below all of them would let one host of every slice go at once. So it is all
    of them, as `minAvailable`: `maxUnavailable` is only for controllers that can be scaled through Kubernetes, which a
    RayCluster cannot (https://kubernetes.io/docs/tasks/run-application/configure-pdb/#arbitrary-controllers-and-selectors).

    Nothing is blocked for good: GKE's upgrades end their wait after an hour
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies), and KubeRay and Pulumi
    delete pods without asking. While a new Ray cluster comes up beside the old one, both count, and spare pods may go.
    """

    def __init__(self, name: str, args: DisruptionBudgetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:DisruptionBudget", name, {}, opts)
        k8s.policy.v1.PodDisruptionBudget(
            name,
            metadata={"name": args["object_name"], "namespace": args["namespace"]},
            spec={"min_available": args["count"], "selector": {"match_labels": dict(args["pods"])}},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
