"""The resources of a `gke` stack, declared inside a running Pulumi program."""

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from infra.components import Cluster, ExistingCluster, Network, NodeAccount, Queue, Registry, SlicePool, Storage
from infra.components.apis import Apis
from infra.components.arguments import ArgumentsError
from infra.components.cpu_pool import CpuPool
from infra.components.network import NetworkArgs, SecondNetwork
from infra.components.queue import QueueArgs
from infra.components.registry import RegistryArgs
from infra.components.slice_pool import Capacity, SlicePoolArgs
from infra.components.workspace import Workspace, WorkspaceArgs, pod_identity
from infra.plan.node_pools import cpu_machine
from infra.platforms.gke.code import deploy_code
from infra.platforms.gke.google import google_name, google_provider, kubernetes_provider
from infra.platforms.gke.login import KEY, read_kubeconfig, stop
from infra.platforms.gke.order import after
from infra.platforms.gke.workloads import deploy_workloads
from infra.stack import GkePlatform, PoolSpec, StackSpec

CLUSTER_NAME, ACCOUNT_NAME = 40, 30
"""Longest names that GKE and IAM take."""


def deploy(stack_name: str, stack: StackSpec) -> None:
    """Declare everything and export `cluster`, `pools`, `storage`, `endpoints`, `jobs` and, where one is made,
    `registry`.
    """
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
        # Deleting the cluster deletes what is in it; where it cannot be reached any more, that is the only way. What is
        # in a cluster that was there before has to go by itself.
        deleted_with=login.cluster if isinstance(login.cluster, Cluster) else None,
    )
    workspace: WorkspaceArgs = {"namespace": platform.namespace}
    if token := pulumi.Config().get_secret("hubToken"):
        workspace["hub_token"] = token
    # The project's identity pool comes with its first cluster; before that, IAM does not know the pods' account.
    with_identities = after(on_google, login.cluster) if login.cluster else on_google
    # Pods mount the bucket, so that without it, or without access to it, none starts.
    storage = _storage(platform, google, with_identities)
    pulumi.export("storage", storage.url)
    before_pods: list[pulumi.Resource] = [Workspace("workspace", workspace, in_kubernetes), *login.pools, storage]
    # Code that nothing uses any more leaves the state, though not the bucket: a protected one would refuse to.
    unprotected = pulumi.ResourceOptions.merge(with_identities, pulumi.ResourceOptions(protect=False))
    before_pods += deploy_code(platform, stack, after(unprotected, storage))
    if queued := [pool for pool in stack.pools if pool.capacity == "queued"]:
        queue: QueueArgs = {"namespace": platform.namespace, "chart": platform.kueue_chart, "pools": queued}
        before_pods.append(Queue("queue", queue, in_kubernetes))
    # A user's own kubeconfig is read again by each wait: what it holds has no place in a state.
    login_file = platform.cluster.kubeconfig or login.kubeconfig
    deploy_workloads(stack, login_file, after(in_kubernetes, *before_pods), google)
    if platform.registry:
        where: RegistryArgs = {
            "project": platform.project,
            "region": platform.region,
            "repository": platform.registry,
        }
        pulumi.export("registry", Registry("registry", where, on_google).url)


@dataclass(frozen=True)
class Login:
    """How Kubernetes is reached, and what has to be there before its pods can run."""

    kubeconfig: pulumi.Input[str]
    cluster: pulumi.Resource | None
    schedulable: list[pulumi.Resource]
    pools: list[pulumi.Resource]


def _log_in(stack_name: str, stack: StackSpec, opts: pulumi.ResourceOptions) -> Login:
    """The cluster with its node pools: made, or taken by its name, or only logged in to with the user's own file."""
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    wanted = platform.cluster
    if wanted.kubeconfig and not wanted.gets_pools:
        return Login(pulumi.Output.secret(read_kubeconfig(wanted.kubeconfig, wanted.context)), None, [], [])
    account = NodeAccount(
        "nodes", {"project": platform.project, "account_id": google_name(stack_name, ACCOUNT_NAME)}, opts
    )
    # A node that starts before its account may pull images does not come up.
    opts = after(opts, account)
    location = platform.region if wanted.location == "region" else platform.zone
    network: Network | SecondNetwork | None = None
    if wanted.existing:
        second_nics = any(pool.second_nic for pool in stack.pools)
        cluster: Cluster | ExistingCluster = _existing(platform, wanted.existing, location, second_nics, opts)
        schedulable: list[pulumi.Resource] = []
        if second_nics:
            network = SecondNetwork(
                "network",
                {
                    "project": platform.project,
                    "region": platform.region,
                    "google_name": google_name(stack_name, CLUSTER_NAME),
                    "second_nics": platform.network.second_nics,
                },
                opts,
            )
    else:
        network = Network("network", _network(stack_name, stack), opts)
        cluster = _cluster(stack_name, platform, location, network, account, opts)
        schedulable = [_cpu_pool(platform, cluster, account, opts)]
    pools = {
        pool.name: SlicePool(
            pool.name, _slice_pool(platform, pool, cluster, account, network), _gone_with_interface(opts, pool, network)
        )
        for pool in stack.pools
    }
    pulumi.export("cluster", cluster.name)
    pulumi.export("pools", {name: pool.node_pools for name, pool in pools.items()})
    return Login(cluster.kubeconfig, cluster, schedulable, list(pools.values()))


def _gone_with_interface(
    opts: pulumi.ResourceOptions, pool: PoolSpec, network: Network | SecondNetwork | None
) -> pulumi.ResourceOptions:
    """The options of a pool whose hosts have an interface in the second subnetwork: where it is replaced, they are."""
    if not pool.second_nic or network is None or network.second is None:
        return opts
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(replace_with=[network.second]))


def _existing(
    platform: GkePlatform, name: str, location: str, second_nics: bool, opts: pulumi.ResourceOptions
) -> ExistingCluster:
    """The cluster that the stack file names.

    Raises:
        pulumi.RunError: it is not there, or lacks something, in the words of the stack file.
    """
    given = platform.cluster.kubeconfig
    try:
        return ExistingCluster(
            "cluster",
            {
                "project": platform.project,
                "location": location,
                "google_name": name,
                "kubeconfig": read_kubeconfig(given, platform.cluster.context) if given else None,
                "second_nics": second_nics,
            },
            opts,
        )
    except ArgumentsError as error:
        key = f"{KEY}.existing"
        raise stop(*(problem.model_copy(update={"key": key}) for problem in error.problems)) from None


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
    network: Network | SecondNetwork | None,
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
