"""Services before runs, where both wait for machines."""

from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

from infra.plan.identity import services_priority

VALUE = 1000
"""Above 0, which pods without a class have; far below what Kubernetes keeps for its own."""


class ServicesPriorityArgs(TypedDict):
    """Whose services."""

    namespace: str


class ServicesPriority(pulumi.ComponentResource):
    """Makes the class of the services' pods. It puts them first in the scheduler's queue and evicts nobody.

    To preempt would be a promise that Kubernetes does not keep: it frees one node at a time and never looks for victims
    on another one, but a slice of several hosts is free only when all of them are
    (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#cross-node-preemption).
    """

    def __init__(self, name: str, args: ServicesPriorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:ServicesPriority", name, {}, opts)
        k8s.scheduling.v1.PriorityClass(
            name,
            metadata={"name": services_priority(args["namespace"])},
            value=VALUE,
            preemption_policy="Never",
            description="Pods of tpu-ray's services are scheduled before those of its runs.",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
