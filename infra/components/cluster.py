"""The GKE cluster that a stack makes."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.kubeconfig import kubeconfig
from infra.components.network import PODS, SERVICES

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
"""What nodes may do is said by their account's roles; the default scopes would forbid writing to a bucket besides."""

EVERYBODY = "0.0.0.0/0"
"""Whoever has credentials."""

COMPONENTS = ("SYSTEM_COMPONENTS", "WORKLOADS")


class ClusterArgs(TypedDict):
    """What a cluster is made from."""

    project: str
    google_name: str
    """Name of the cluster at Google, 40 characters at most."""
    location: str
    """Region or zone of the control plane."""
    zone: str
    """Zone of the nodes."""
    network: pulumi.Input[str]
    """Self link of a VPC."""
    subnetwork: pulumi.Input[str]
    """Self link of a subnetwork with secondary ranges `pods` and `services`."""
    control_plane_range: str
    """CIDR of the control plane, a /28."""
    node_account: pulumi.Input[str]
    """Address of the nodes' service account."""
    cpu_machine_type: str
    """A machine type of the zone, for the first pool, which is deleted as soon as the cluster is there."""
    deletion_protection: bool
    channel: str
    """`RAPID`, `REGULAR` or `STABLE`."""
    version: NotRequired[str | None]
    authorized_networks: NotRequired[Sequence[str]]
    """CIDRs that may reach the control plane. Absent or empty: no restriction by address."""


class Cluster(pulumi.ComponentResource):
    """Makes one GKE Standard cluster: private nodes, Dataplane V2, Workload Identity, the Ray operator add-on with its
    logs and metrics, GCS FUSE, managed Prometheus, and no node upgrades but the user's own.

    GKE runs the Ray operator and the TPU webhook of the add-on; neither is installed here.
    """

    cluster_id: pulumi.Output[str]
    """`projects/<project>/locations/<location>/clusters/<name>`, what node pools are made in."""
    name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Cluster", name, {}, opts)
        zonal = args["location"] == args["zone"]
        enabled = {"enabled": True}
        networks = args.get("authorized_networks")
        cluster = gcp.container.Cluster(
            name,
            name=args["google_name"],
            project=args["project"],
            location=args["location"],
            # A zonal cluster has its own zone, and refuses to be told of it.
            node_locations=None if zonal else [args["zone"]],
            deletion_protection=args["deletion_protection"],
            # The first pool cannot be left out, only deleted: its size and, below, its machines still have to exist.
            remove_default_node_pool=True,
            initial_node_count=1,
            node_config={
                "machine_type": args["cpu_machine_type"],
                "service_account": args["node_account"],
                "oauth_scopes": [CLOUD_PLATFORM],
            },
            network=args["network"],
            subnetwork=args["subnetwork"],
            networking_mode="VPC_NATIVE",
            ip_allocation_policy={"cluster_secondary_range_name": PODS, "services_secondary_range_name": SERVICES},
            # Both can only be had from the start; second interfaces of TPU hosts need them.
            datapath_provider="ADVANCED_DATAPATH",
            enable_multi_networking=True,
            private_cluster_config={
                "enable_private_nodes": True,
                "enable_private_endpoint": False,
                "master_ipv4_cidr_block": args["control_plane_range"],
            },
            # Written also where nobody is kept out: the provider sees no difference in a list that is left out.
            master_authorized_networks_config={
                "cidr_blocks": [{"cidr_block": network} for network in networks or (EVERYBODY,)]
            },
            release_channel={"channel": args["channel"]},
            min_master_version=args.get("version"),
            workload_identity_config={"workload_pool": f"{args['project']}.svc.id.goog"},
            # What is left out stays as it was: what shall be off is written off.
            addons_config={
                "ray_operator_configs": [
                    {
                        "enabled": True,
                        "ray_cluster_logging_config": enabled,
                        "ray_cluster_monitoring_config": enabled,
                    }
                ],
                "gcs_fuse_csi_driver_config": enabled,
            },
            logging_config={"enable_components": list(COMPONENTS)},
            monitoring_config={
                "enable_components": ["SYSTEM_COMPONENTS"],
                "managed_prometheus": enabled,
            },
            # Chips are handed on quickly when a job has ended.
            cluster_autoscaling={"enabled": False, "autoscaling_profile": "OPTIMIZE_UTILIZATION"},
            # An upgrade of a node restarts its whole slice, so it comes when the user says so.
            maintenance_policy={
                "recurring_window": {
                    "start_time": "2026-01-03T06:00:00Z",
                    "end_time": "2026-01-03T12:00:00Z",
                    "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
                },
                "maintenance_exclusions": [
                    {
                        "exclusion_name": "no-node-upgrades",
                        "start_time": "2026-01-01T00:00:00Z",
                        "exclusion_options": {
                            "scope": "NO_MINOR_OR_NODE_UPGRADES",
                            "end_time_behavior": "UNTIL_END_OF_SUPPORT",
                        },
                    }
                ],
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                # It describes the first pool, which is gone: https://github.com/pulumi/pulumi-gcp/issues/744
                ignore_changes=["nodeConfig"],
                custom_timeouts=pulumi.CustomTimeouts(create="90m", update="90m", delete="90m"),
            ),
        )
        self.cluster_id, self.name = cluster.id, cluster.name
        ca_certificate = cluster.master_auth.apply(lambda auth: auth["cluster_ca_certificate"])
        self.kubeconfig = pulumi.Output.all(cluster.name, cluster.endpoint, ca_certificate).apply(
            lambda known: kubeconfig(*known)
        )
        self.register_outputs({"clusterId": self.cluster_id, "name": self.name, "kubeconfig": self.kubeconfig})
