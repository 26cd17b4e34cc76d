"""A GKE cluster that is there already: pools are made in it, and nothing else of it is touched."""

from collections.abc import Iterator
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.arguments import ArgumentsError, check_arguments
from infra.components.kubeconfig import kubeconfig
from infra.stack import Problem


class ExistingClusterArgs(TypedDict):
    """Which cluster is meant."""

    project: str
    location: str
    """Region or zone of its control plane."""
    google_name: str
    """Its name."""
    kubeconfig: NotRequired[str | None]
    """Credentials to use instead of those that Google gives."""
    second_nics: NotRequired[bool]
    """Whether hosts get a second network interface. Absent: false."""


class ExistingCluster(pulumi.ComponentResource):
    """Makes nothing; looks the cluster up by its name, already in the preview.

    Raises:
        ArgumentsError: there is no such cluster, or it lacks what TPU pools and their pods need.
    """

    cluster_id: pulumi.Output[str]
    name: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_arguments(f"ExistingCluster {name}", args, ExistingClusterArgs)
        super().__init__("tpu-ray:index:ExistingCluster", name, {}, opts)
        found = _look_up(name, args, pulumi.InvokeOptions(parent=self))
        if problems := list(_lacking(found, args)):
            raise ArgumentsError(f"ExistingCluster {name}", problems)
        self.name = pulumi.Output.from_input(args["google_name"])
        self.cluster_id = pulumi.Output.from_input(
            f"projects/{args['project']}/locations/{args['location']}/clusters/{args['google_name']}"
        )
        if given := args.get("kubeconfig"):
            self.kubeconfig = pulumi.Output.secret(given)
        else:
            login = kubeconfig(found.name, found.endpoint, found.master_auths[0].cluster_ca_certificate)
            self.kubeconfig = pulumi.Output.from_input(login)
        self.register_outputs({"clusterId": self.cluster_id, "name": self.name, "kubeconfig": self.kubeconfig})


def _look_up(name: str, args: ExistingClusterArgs, opts: pulumi.InvokeOptions) -> gcp.container.GetClusterResult:
    try:
        return gcp.container.get_cluster(
            name=args["google_name"], location=args["location"], project=args["project"], opts=opts
        )
    except Exception as error:
        # The SDK gives every refusal as a bare Exception with the provider's words, which end so.
        if "not found" not in str(error):
            raise
    raise ArgumentsError(
        f"ExistingCluster {name}",
        [
            Problem(
                key="google_name",
                value=args["google_name"],
                reason=f"project {args['project']} has no cluster of this name whose control plane is in "
                f"{args['location']}; `gcloud container clusters list --project {args['project']}` shows name and "
                "location of each",
            )
        ],
    )


def _lacking(found: gcp.container.GetClusterResult, args: ExistingClusterArgs) -> Iterator[Problem]:
    """What the pools and their pods need and Google says is off. None of it is turned on here."""
    update = f"gcloud container clusters update {args['google_name']} --location {args['location']}"
    ray = [config.enabled for addons in found.addons_configs for config in addons.ray_operator_configs]
    if True not in ray:
        yield _lacks(args, "the Ray operator add-on", f"`{update} --update-addons=RayOperator=ENABLED` turns it on")
    fuse = [config.enabled for addons in found.addons_configs for config in addons.gcs_fuse_csi_driver_configs]
    if True not in fuse:
        on = f"`{update} --update-addons=GcsFuseCsiDriver=ENABLED` turns it on"
        yield _lacks(args, "the Cloud Storage FUSE CSI driver, through which pods see the bucket", on)
    if not any(identity.workload_pool for identity in found.workload_identity_configs):
        pool = f"{args['project']}.svc.id.goog"
        yield _lacks(args, "Workload Identity", f"`{update} --workload-pool={pool}` turns it on")
    if args.get("second_nics") and not found.enable_multi_networking:
        yield _lacks(
            args,
            "multi-networking, which second network interfaces need",
            "a cluster has it from its creation on (--enable-multi-networking) or never",
        )


def _lacks(args: ExistingClusterArgs, what: str, next_step: str) -> Problem:
    return Problem(key="google_name", value=args["google_name"], reason=f"this cluster is without {what}; {next_step}")
