"""A GKE cluster of your own, and TPU slices in it."""

import pulumi
import pulumi_gcp as gcp

from tpu_ray import NodeAccount, SlicePool

google = pulumi.Config("gcp")
project, zone = google.require("project"), google.require("zone")
slices = pulumi.Config().get_int("slices") or 1

cluster = gcp.container.Cluster(
    "mine",
    name="mine",
    location=zone,
    initial_node_count=1,
    deletion_protection=False,
    workload_identity_config={"workload_pool": f"{project}.svc.id.goog"},
    addons_config={"ray_operator_configs": [{"enabled": True}]},
)
nodes = NodeAccount("nodes", {"project": project, "account_id": "tpu-nodes"})
train = SlicePool(
    "train",
    {
        "generation": "v6e",
        "topology": "4x4",
        "slices_min": slices,
        "slices_max": slices,
        "project": project,
        "zone": zone,
        "cluster": cluster.id,
        "node_account": nodes.email,
    },
)
pulumi.export("nodePools", train.node_pools)
