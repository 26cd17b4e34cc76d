"""A GKE cluster that is there already: pools are made in it, and nothing else of it is touched."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.kubeconfig import kubeconfig


class ExistingClusterArgs(TypedDict):
    """Which cluster is meant."""

    project: str
    location: str
    google_name: str
    kubeconfig: NotRequired[str | None]
    """Credentials to use instead of those that Google gives."""


class ExistingCluster(pulumi.ComponentResource):
    """Makes nothing; looks the cluster up by its name, and fails in the preview where there is none."""

    cluster_id: pulumi.Output[str]
    name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:ExistingCluster", name, {}, opts)
        place = f"projects/{args['project']}/locations/{args['location']}"
        found = gcp.container.get_cluster_output(
            name=args["google_name"],
            location=args["location"],
            project=args["project"],
            opts=pulumi.InvokeOptions(parent=self),
        )
        self.name = found.apply(lambda cluster: str(cluster.name))
        self.cluster_id = pulumi.Output.concat(place, "/clusters/", self.name)
        if given := args.get("kubeconfig"):
            self.kubeconfig = pulumi.Output.secret(given)
        else:
            self.kubeconfig = found.apply(
                lambda cluster: kubeconfig(
                    cluster.name, cluster.endpoint, cluster.master_auths[0].cluster_ca_certificate
                )
            )
        self.register_outputs({"clusterId": self.cluster_id, "name": self.name, "kubeconfig": self.kubeconfig})
