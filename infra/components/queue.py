"""Kueue, which asks GKE for all machines of a queued slice at once."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

from infra.plan.identity import QUEUE
from infra.plan.node_pools import POOL_LABEL, slice_selector
from infra.stack import PoolSpec

NAMESPACE = "kueue-system"
VERSION = "0.17.0"
API = "kueue.x-k8s.io/v1beta2"
"""The version that is stored: another one would need Kueue's own webhook for every read."""
NO_CHIPS = f"{QUEUE}.cpu"
"""Flavor of pods without chips. No pool has its name: there is no dot in these."""
PLENTY = "1000000"
"""Of CPUs and GiB: the chips are what is counted."""


class QueueArgs(TypedDict):
    """What is queued for."""

    namespace: str
    """Namespace of the jobs."""
    chart: str
    """Address or folder of Kueue's Helm chart."""
    pools: Sequence[PoolSpec]
    """The pools of capacity `queued`."""


class Queue(pulumi.ComponentResource):
    """Makes Kueue from its chart, a flavor for each pool, one cluster queue with the pools' chips as its quota, the
    check that sends a `ProvisioningRequest` to GKE, and the local queue that a job names by its label.
    """

    def __init__(self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Queue", name, {}, opts)
        mine = pulumi.ResourceOptions(parent=self)
        system = k8s.core.v1.Namespace(f"{name}-system", metadata={"name": NAMESPACE}, opts=mine)
        local = args["chart"].startswith((".", "/"))
        chart = k8s.helm.v4.Chart(
            "kueue",
            chart=args["chart"],
            version=None if local else VERSION,
            namespace=system.metadata["name"],
            opts=mine,
        )
        after = pulumi.ResourceOptions(parent=self, depends_on=[chart])

        def custom(kind: str, named: str, spec: Mapping[str, object], **metadata: object) -> None:
            k8s.apiextensions.CustomResource(
                f"{name}-{kind.lower()}-{named}",
                api_version=API,
                kind=kind,
                metadata={"name": named, **metadata},
                spec=spec,
                opts=after,
            )

        # No labels: TPU nodes repel pods that ask for no chips, and a cluster that was there has pools of its own.
        custom("ResourceFlavor", NO_CHIPS, {})
        for pool in args["pools"]:
            labels = {POOL_LABEL: pool.name, **slice_selector(pool.slice)}
            custom("ResourceFlavor", pool.name, {"nodeLabels": labels})
            check = f"{QUEUE}-{pool.name}"
            config = {
                "provisioningClassName": "queued-provisioning.gke.io",
                "managedResources": ["google.com/tpu"],
                "parameters": {"maxRunDurationSeconds": str(pool.max_run_s)} if pool.max_run_s else {},
            }
            custom("ProvisioningRequestConfig", check, config)
            custom(
                "AdmissionCheck",
                check,
                {
                    "controllerName": "kueue.x-k8s.io/provisioning-request",
                    "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": check},
                },
            )
        custom("ClusterQueue", QUEUE, _cluster_queue(args["pools"]))
        custom("LocalQueue", QUEUE, {"clusterQueue": QUEUE}, namespace=args["namespace"])
        self.register_outputs({})


def _cluster_queue(pools: Sequence[PoolSpec]) -> dict[str, object]:
    """The head's flavor has no chips; the workers' is that of the pool that their selector names."""
    chips = {NO_CHIPS: 0, **{pool.name: pool.slices.max * pool.slice.chips for pool in pools}}
    flavors = [
        {
            "name": flavor,
            "resources": [
                {"name": "cpu", "nominalQuota": PLENTY},
                {"name": "memory", "nominalQuota": f"{PLENTY}Gi"},
                {"name": "google.com/tpu", "nominalQuota": str(quota)},
            ],
        }
        for flavor, quota in chips.items()
    ]
    checks = [{"name": f"{QUEUE}-{pool.name}", "onFlavors": [pool.name]} for pool in pools]
    return {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu", "memory", "google.com/tpu"], "flavors": flavors}],
        "admissionChecksStrategy": {"admissionChecks": checks},
    }
