"""Nodes without chips, for the heads of the Ray clusters and for the cluster's own pods."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.cluster import CLOUD_PLATFORM
from infra.plan.node_pools import POOL_LABEL
from infra.stack.rules_names import CPU_POOL


class CpuPoolArgs(TypedDict):
    """What the pool is made from; `nodes_min` and `nodes_max` bound what the autoscaler does."""

    project: str
    zone: str
    cluster: pulumi.Input[str]
    node_account: pulumi.Input[str]
    machine_type: str
    nodes_min: int
    nodes_max: int


class CpuPool(pulumi.ComponentResource):
    """Makes one node pool. GKE's own pods have nowhere else to run: they do not tolerate the TPU nodes' taint."""

    def __init__(self, name: str, args: CpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:CpuPool", name, {}, opts)
        gcp.container.NodePool(
            name,
            name=CPU_POOL,
            project=args["project"],
            cluster=args["cluster"],
            node_locations=[args["zone"]],
            initial_node_count=args["nodes_min"],
            autoscaling={
                "min_node_count": args["nodes_min"],
                "max_node_count": args["nodes_max"],
                "location_policy": "ANY",
            },
            management={"auto_repair": True, "auto_upgrade": True},
            upgrade_settings={"strategy": "SURGE", "max_surge": 1, "max_unavailable": 0},
            network_config={"enable_private_nodes": True},
            node_config={
                "machine_type": args["machine_type"],
                "image_type": "COS_CONTAINERD",
                "disk_type": "pd-balanced",
                "disk_size_gb": 100,
                "service_account": args["node_account"],
                "oauth_scopes": [CLOUD_PLATFORM],
                "labels": {POOL_LABEL: CPU_POOL},
                "gvnic": {"enabled": True},
                "gcfs_config": {"enabled": True},
                "workload_metadata_config": {"mode": "GKE_METADATA"},
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["initialNodeCount"],
                replace_on_changes=["nodeLocations"],
                delete_before_replace=True,
                custom_timeouts=pulumi.CustomTimeouts(create="60m", update="60m", delete="60m"),
            ),
        )
        self.register_outputs({})
