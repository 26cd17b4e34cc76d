"""The resources of a `gke` stack, declared inside a running Pulumi program."""

from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_gcp as gcp

from infra.components import Cluster, ExistingCluster, Network, NodeAccount, Queue, Registry, SlicePool, Storage
from infra.components.apis import Apis
from infra.components.cpu_pool import CpuPool
from infra.components.network import NetworkArgs
from infra.components.registry import RegistryArgs
from infra.components.slice_pool import Capacity, SlicePoolArgs
from infra.components.workspace import Workspace, WorkspaceArgs, pod_identity
from infra.plan.node_pools import cpu_machine
from infra.platforms.gke.google import google_name, google_provider, kubernetes_provider
from infra.stack import GkePlatform, PoolSpec, StackSpec

CLUSTER_NAME, ACCOUNT_NAME = 40, 30
"""Longest names that GKE and IAM take."""


def deploy(stack_name: str, stack: StackSpec) -> None:
    """Declare everything and export `cluster`, `pools`, `storage` and, where one is made, `registry`."""
    assert isinstance(stack.platform, GkePlatform)
    platform = stack.platform
    google = google_provider(platform)
    # With protection on, nothing of the stack can be deleted, so that `destroy` is refused before it begins.
    protect = platform.cluster.deletion_protection
    on_google = pulumi.ResourceOptions(providers=[google], protect=protect)
    apis = Apis("apis", {"project": platform.project}, on_google)
    on_google = after(on_google, apis)

    login = _log_in(stack_name, stack, on_google)
    in_kubernetes = pulumi.ResourceOptions(
        providers=[kubernetes_provider(login.kubeconfig, platform.cluster.context, login.cluster)],
        protect=protect,
        depends_on=login.schedulable,
        # Deleting the cluster deletes what is in it; where it cannot be reached any more, that is the only way.
        deleted_with=login.cluster,
    )
    workspace: WorkspaceArgs = {"namespace": platform.namespace}
    if token := pulumi.Config().get_secret("hubToken"):
        workspace["hub_token"] = token
    Workspace("workspace", workspace, in_kubernetes)
    if queued := [pool for pool in stack.pools if pool.capacity == "queued"]:
        Queue("queue", {"namespace": platform.namespace, "chart": platform.kueue_chart, "pools": queued}, in_kubernetes)
    # The project's identity pool comes with its first cluster; before that, IAM does not know the pods' account.
    with_identities = after(on_google, login.cluster) if login.cluster else on_google
    pulumi.export("storage", _storage(platform, google, with_identities).url)
    if platform.registry:
        place: RegistryArgs = {
            "project": platform.project,
            "region": platform.region,
            "repository": platform.registry,
        }
        pulumi.export("registry", Registry("registry", place, on_google).url)


@dataclass(frozen=True)
class Login:
    """How Kubernetes is reached, and what has to be there before its pods can run."""

    kubeconfig: pulumi.Input[str]
    cluster: pulumi.Resource | None
    schedulable: list[pulumi.Resource]


def after(opts: pulumi.ResourceOptions, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
    """The same options, behind these resources."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(resources)))


def _log_in(stack_name: str, stack: StackSpec, opts: pulumi.ResourceOptions) -> Login:
    """The cluster with its node pools: made, or taken by its name, or only logged in to with the user's own file."""
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    wanted = platform.cluster
    if wanted.kubeconfig and not wanted.existing:
        return Login(read_kubeconfig(wanted.kubeconfig), None, [])
    account = NodeAccount(
        "nodes", {"project": platform.project, "account_id": google_name(stack_name, ACCOUNT_NAME)}, opts
    )
    # A node that starts before its account may pull images does not come up.
    opts = after(opts, account)
    location = platform.region if wanted.location == "region" else platform.zone
    network: Network | None = None
    if wanted.existing:
        cluster: Cluster | ExistingCluster = ExistingCluster(
            "cluster",
            {
                "project": platform.project,
                "location": location,
                "google_name": wanted.existing,
                "kubeconfig": read_kubeconfig(wanted.kubeconfig) if wanted.kubeconfig else None,
            },
            opts,
        )
        schedulable: list[pulumi.Resource] = []
    else:
        network = Network("network", _network(stack_name, stack), opts)
        cluster = _cluster(stack_name, platform, location, network, account, opts)
        schedulable = [_cpu_pool(platform, cluster, account, opts)]
    pools = {
        pool.name: SlicePool(pool.name, _slice_pool(platform, pool, cluster, account, network), opts)
        for pool in stack.pools
    }
    pulumi.export("cluster", cluster.name)
    pulumi.export("pools", {name: pool.node_pools for name, pool in pools.items()})
    return Login(cluster.kubeconfig, cluster, schedulable)


def read_kubeconfig(file: str) -> str:
    """The text of the user's kubeconfig.

    Raises:
        pulumi.RunError: the file cannot be read.
    """
    try:
        return Path(file).expanduser().read_text()
    except OSError as error:
        raise pulumi.RunError(
            f"tpu-ray:platform.cluster.kubeconfig: {file}\n    the file cannot be read: {error.strerror}"
        ) from None


def _network(stack_name: str, stack: StackSpec) -> NetworkArgs:
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    ranges = platform.network
    args: NetworkArgs = {
        "project": platform.project,
        "region": platform.region,
        "google_name": google_name(stack_name, CLUSTER_NAME),
        "nodes": ranges.nodes,
        "pods": ranges.pods,
        "services": ranges.services,
    }
    if any(pool.second_nic for pool in stack.pools):
        args["second_nics"] = ranges.second_nics
    return args


def _cluster(
    stack_name: str,
    platform: GkePlatform,
    location: str,
    network: Network,
    account: NodeAccount,
    opts: pulumi.ResourceOptions,
) -> Cluster:
    wanted = platform.cluster
    return Cluster(
        "cluster",
        {
            "project": platform.project,
            "google_name": google_name(stack_name, CLUSTER_NAME),
            "location": location,
            "zone": platform.zone,
            "network": network.network,
            "subnetwork": network.subnetwork,
            "control_plane_range": platform.network.control_plane,
            "node_account": account.email,
            "cpu_machine_type": cpu_machine(platform),
            "deletion_protection": wanted.deletion_protection,
            "channel": wanted.channel,
            "version": wanted.version,
            "authorized_networks": wanted.authorized_networks,
        },
        after(opts, network),
    )


def _cpu_pool(platform: GkePlatform, cluster: Cluster, account: NodeAccount, opts: pulumi.ResourceOptions) -> CpuPool:
    return CpuPool(
        "cpu",
        {
            "project": platform.project,
            "zone": platform.zone,
            "cluster": cluster.cluster_id,
            "node_account": account.email,
            "machine_type": cpu_machine(platform),
            "nodes_min": platform.cluster.cpu_nodes.min,
            "nodes_max": platform.cluster.cpu_nodes.max,
        },
        opts,
    )


def _slice_pool(
    platform: GkePlatform,
    pool: PoolSpec,
    cluster: Cluster | ExistingCluster,
    account: NodeAccount,
    network: Network | None,
) -> SlicePoolArgs:
    args: SlicePoolArgs = {
        "generation": pool.generation,
        "topology": pool.topology,
        "machine_type": pool.slice.machine_type,
        "slices_min": pool.slices.min,
        "slices_max": pool.slices.max,
        "capacity": Capacity(pool.capacity),
        "reservation": pool.reservation,
        "max_run_s": pool.max_run_s,
        "node_image": pool.node_image,
        "boot_disk_gib": pool.boot_disk_gib,
        "second_nic": pool.second_nic,
        "project": platform.project,
        "zone": pool.zone or platform.zone,
        "cluster": cluster.cluster_id,
        "node_account": account.email,
    }
    if network is not None and network.second_network is not None and network.second_subnetwork is not None:
        args["second_network"], args["second_subnetwork"] = network.second_network, network.second_subnetwork
    return args


def _storage(platform: GkePlatform, google: gcp.Provider, opts: pulumi.ResourceOptions) -> Storage:
    found = gcp.organizations.get_project_output(
        project_id=platform.project, opts=pulumi.InvokeOptions(provider=google)
    )
    number = found.apply(lambda project: str(project.number))
    return Storage(
        "storage",
        {
            "project": platform.project,
            "region": platform.region,
            "bucket": platform.storage.removeprefix("gs://").partition("/")[0],
            "make": platform.make_storage,
            "delete": platform.delete_storage,
            "members": [pod_identity(platform.project, number, platform.namespace)],
        },
        opts,
    )
