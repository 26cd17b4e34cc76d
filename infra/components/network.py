"""The cluster's own network: private nodes that reach the internet through NAT."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.arguments import check_arguments

PODS, SERVICES = "pods", "services"
"""Names of the secondary ranges."""

JUMBO_MTU = 8896
"""Largest packet of Google's network: https://docs.cloud.google.com/vpc/docs/mtu"""


class NetworkArgs(TypedDict):
    """What a network is made from. Ranges are CIDRs such as `10.0.0.0/20`."""

    project: str
    region: str
    google_name: str
    """Name of the network at Google, and the beginning of the names of its parts."""
    nodes: str
    pods: str
    services: str
    second_nics: NotRequired[str]
    """Range of the TPU hosts' second interfaces. Absent: there is no second network."""


class Network(pulumi.ComponentResource):
    """Makes a VPC, a subnetwork with ranges for pods and services, a router with NAT, and, where hosts have a second
    interface, a second VPC and subnetwork for these.

    A changed range of pods or services, and a range of nodes that does not contain the old one, make a new subnetwork
    and with it a new cluster.
    """

    network: pulumi.Output[str]
    """Self link of the VPC."""
    subnetwork: pulumi.Output[str]
    """Self link of the subnetwork."""
    second_network: pulumi.Output[str] | None
    """Names of network and subnetwork of the second interfaces, where there are any."""
    second_subnetwork: pulumi.Output[str] | None

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_arguments(f"Network {name}", args, NetworkArgs)
        super().__init__("tpu-ray:index:Network", name, {}, opts)
        mine = pulumi.ResourceOptions(parent=self)
        place = {"project": args["project"], "region": args["region"]}
        google_name = args["google_name"]
        network = gcp.compute.Network(
            name,
            name=google_name,
            project=args["project"],
            auto_create_subnetworks=False,
            mtu=JUMBO_MTU,
            opts=mine,
        )
        subnetwork = gcp.compute.Subnetwork(
            name,
            **place,
            name=google_name,
            network=network.self_link,
            ip_cidr_range=args["nodes"],
            secondary_ip_ranges=[
                {"range_name": PODS, "ip_cidr_range": args["pods"]},
                {"range_name": SERVICES, "ip_cidr_range": args["services"]},
            ],
            private_ip_google_access=True,
            # Google would be asked to change a range that the cluster uses, and refuses.
            opts=pulumi.ResourceOptions(
                parent=self, replace_on_changes=["secondaryIpRanges"], delete_before_replace=True
            ),
        )
        router = gcp.compute.Router(name, **place, name=google_name, network=network.self_link, opts=mine)
        gcp.compute.RouterNat(
            name,
            **place,
            name=google_name,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=mine,
        )
        self.network, self.subnetwork = network.self_link, subnetwork.self_link
        # The subnetwork itself: hosts with an interface in it go before it does.
        self.second: pulumi.Resource | None = None
        self.second_network = self.second_subnetwork = None
        if second_range := args.get("second_nics"):
            self.second_network, self.second_subnetwork, self.second = _second(name, args, second_range, mine)
        self.register_outputs({"network": self.network, "subnetwork": self.subnetwork})


class SecondNetworkArgs(TypedDict):
    """What the network of the second interfaces is made from, beside a cluster that is there already."""

    project: str
    region: str
    google_name: str
    """Beginning of its name at Google."""
    second_nics: str
    """Its range, a CIDR such as `10.2.0.0/20`."""


class SecondNetwork(pulumi.ComponentResource):
    """Makes the second VPC and subnetwork of a `Network`, and nothing else."""

    second_network: pulumi.Output[str]
    second_subnetwork: pulumi.Output[str]
    """Names of both."""

    def __init__(self, name: str, args: SecondNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_arguments(f"SecondNetwork {name}", args, SecondNetworkArgs)
        super().__init__("tpu-ray:index:SecondNetwork", name, {}, opts)
        mine = pulumi.ResourceOptions(parent=self)
        self.second_network, self.second_subnetwork, self.second = _second(name, args, args["second_nics"], mine)
        self.register_outputs({})


def _second(
    name: str, args: NetworkArgs | SecondNetworkArgs, nics: str, opts: pulumi.ResourceOptions
) -> tuple[pulumi.Output[str], pulumi.Output[str], pulumi.Resource]:
    """Make VPC and subnetwork of the second interfaces; their names and the subnetwork itself."""
    google_name = f"{args['google_name']}-second"
    network = gcp.compute.Network(
        f"{name}-second",
        name=google_name,
        project=args["project"],
        auto_create_subnetworks=False,
        mtu=JUMBO_MTU,
        opts=opts,
    )
    subnetwork = gcp.compute.Subnetwork(
        f"{name}-second",
        project=args["project"],
        region=args["region"],
        name=google_name,
        network=network.self_link,
        ip_cidr_range=nics,
        private_ip_google_access=True,
        opts=opts,
    )
    return network.name, subnetwork.name, subnetwork
