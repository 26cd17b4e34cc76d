"""A slice pool by its type alone, as generated code of another language asks for it: nothing of tpu-ray is imported."""

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

google, config = pulumi.Config("gcp"), pulumi.Config()
project, zone = google.require("project"), google.require("zone")
slices = config.get_int("slices") or 1


class SlicePool(pulumi.ComponentResource):
    """What a generated SDK has for the component."""

    nodePools: pulumi.Output[list[str]]

    def __init__(self, name: str, properties: Mapping[str, pulumi.Input[object]]) -> None:
        super().__init__("tpu-ray:index:SlicePool", name, {**properties, "nodePools": None}, None, remote=True)


cluster = gcp.container.Cluster(
    "mine",
    name="mine",
    location=zone,
    initial_node_count=1,
    deletion_protection=False,
    workload_identity_config={"workload_pool": f"{project}.svc.id.goog"},
)
nodes = gcp.serviceaccount.Account("nodes", account_id="tpu-nodes")
train = SlicePool(
    "train",
    {
        "generation": "v6e",
        "topology": config.get("topology") or "4x4",
        "slicesMin": slices,
        "slicesMax": slices,
        "project": project,
        "zone": zone,
        "cluster": cluster.id,
        "nodeAccount": nodes.email,
    },
)
pulumi.export("nodePools", train.nodePools)
