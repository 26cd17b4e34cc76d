"""The node pools of one pool of slices: `SlicePool`."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from copy import copy
from enum import StrEnum
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.arguments import ArgumentsError, argument_problems
from infra.components.cluster import CLOUD_PLATFORM
from infra.plan.node_pools import Fixed, NodePool, node_pools
from infra.stack import PoolSpec, Problem, StackError, parse_pool
from infra.stack.rules_modes import LENT
from infra.stack.rules_network import PODS_PER_HOST


class Capacity(StrEnum):
    """How Google sells the machines."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    FLEX_START = "flex-start"
    QUEUED = "queued"


class SlicePoolArgs(TypedDict):
    """What a pool of slices is made from. Everything but the last four is plain: it decides how much is made."""

    generation: str
    """`v4`, `v5e`, `v5p`, `v6e` or `v7x`."""
    topology: str
    """Sides of each slice, e.g. `4x4` or `2x2x2`."""
    machine_type: NotRequired[str | None]
    """Only where two machine types make the topology."""
    slices_min: NotRequired[int]
    """Slices that are kept. Absent: 1, or 0 where the capacity comes only on demand."""
    slices_max: NotRequired[int]
    """Slices at most. Absent: 1."""
    capacity: NotRequired[Capacity]
    """`on-demand`, also when absent, `spot`, `reservation`, `flex-start` or `queued`."""
    reservation: NotRequired[str | None]
    """Its name, with capacity `reservation`."""
    max_run_s: NotRequired[int | None]
    """How long a flex-start or queued machine is kept, in seconds. Absent: a week."""
    node_image: NotRequired[str]
    """`COS_CONTAINERD`, also when absent, or `UBUNTU_CONTAINERD`."""
    boot_disk_gib: NotRequired[int]
    """Of each host. Absent: 100."""
    second_nic: NotRequired[bool]
    """Whether each host has a second network interface, which jobs over several slices need (v6e, v7x)."""
    project: str
    """Id of the project."""
    zone: str
    """Zone of the hosts, in the cluster's region."""
    cluster: pulumi.Input[str]
    """Id of the cluster: `projects/<project>/locations/<location>/clusters/<name>`."""
    node_account: pulumi.Input[str]
    """Address of the nodes' service account."""
    second_network: NotRequired[pulumi.Input[str]]
    """Name of the network of the second interfaces, with `second_nic`."""
    second_subnetwork: NotRequired[pulumi.Input[str]]
    """Name of its subnetwork."""


class SlicePool(pulumi.ComponentResource):
    """Makes one GKE node pool per slice of several hosts, or one node pool whose nodes are the slices of one host each;
    on v7x also a workload policy per slice of several hosts.

    Raises:
        ArgumentsError: every mistake of the arguments at once.
    """

    node_pools: pulumi.Output[list[str]]
    """Names of the node pools."""

    def __init__(self, name: str, args: SlicePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # Checked first: a component that cannot be made shall not be in the state.
        pool = _pool_spec(name, args)
        # A component is not replaced itself; its node pools are.
        own = copy(opts) if opts else pulumi.ResourceOptions()
        self._replace_with, own.replace_with = own.replace_with, None
        super().__init__("tpu-ray:index:SlicePool", name, {}, own)
        made = [self._node_pool(one, args) for one in node_pools(pool, args["zone"])]
        self.node_pools = pulumi.Output.all(*(one.name for one in made))
        self.register_outputs({"nodePools": self.node_pools})

    def _node_pool(self, pool: NodePool, args: SlicePoolArgs) -> Any:
        return gcp.container.NodePool(
            pool.name,
            name=pool.name,
            project=args["project"],
            cluster=args["cluster"],
            node_locations=[pool.zone],
            **_size(pool),
            max_pods_per_node=PODS_PER_HOST,
            placement_policy=self._placement(pool, args["project"]),
            queued_provisioning={"enabled": True} if pool.queued else None,
            management={"auto_repair": pool.auto_repair, "auto_upgrade": True},
            # No chips are there for a surge: one host after the other.
            upgrade_settings={"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1},
            network_config=_network_config(pool, args),
            node_config={
                "machine_type": pool.machine_type,
                "image_type": pool.node_image,
                "disk_type": pool.disk_type,
                "disk_size_gb": pool.disk_gib,
                "service_account": args["node_account"],
                "oauth_scopes": [CLOUD_PLATFORM],
                "labels": pool.labels,
                "spot": True if pool.spot else None,
                "flex_start": True if pool.flex_start else None,
                "max_run_duration": None if pool.max_run_s is None else f"{pool.max_run_s}s",
                "reservation_affinity": _reservation(pool),
                "gvnic": {"enabled": True},
                "gcfs_config": {"enabled": True},
                "workload_metadata_config": {"mode": "GKE_METADATA"},
                # Model servers map more files than the kernel's default lets them.
                "linux_node_config": {"sysctls": {"vm.max_map_count": "8388608"}},
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=_changed_by_others(pool),
                replace_on_changes=_needs_new_machines(pool),
                # The provider sees no difference in an interface that is left out.
                replacement_trigger=pool.second_nic,
                replace_with=self._replace_with,
                # The quota holds one of them.
                delete_before_replace=True,
                custom_timeouts=_timeouts(pool),
            ),
        )

    def _placement(self, pool: NodePool, project: str) -> Mapping[str, pulumi.Input[str]] | None:
        """None for a single host: GKE refuses a policy there."""
        if pool.topology is None:
            return None
        if not pool.workload_policy:
            return {"type": "COMPACT", "tpu_topology": pool.topology}
        # Taken for the whole region of the project, unlike the name of a node pool.
        stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
        policy = gcp.compute.ResourcePolicy(
            pool.name,
            name=f"{pool.name}-{hashlib.sha256(stack.encode()).hexdigest()[:6]}",
            project=project,
            region=pool.zone.rpartition("-")[0],
            workload_policy={"type": "HIGH_THROUGHPUT", "accelerator_topology": pool.topology},
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        # GKE stores no type beside a workload policy, and another word than the one stored would be a new pool.
        return {"type": "", "policy_name": policy.name, "tpu_topology": pool.topology}


def _size(pool: NodePool) -> dict[str, object]:
    if isinstance(pool.size, Fixed):
        return {"node_count": pool.size.nodes}
    limits = {"min_node_count": pool.size.least, "max_node_count": pool.size.most, "location_policy": "ANY"}
    return {"autoscaling": limits, "initial_node_count": pool.size.least}


def _network_config(pool: NodePool, args: SlicePoolArgs) -> dict[str, object]:
    config: dict[str, object] = {"enable_private_nodes": True}
    if pool.second_nic:
        config["additional_node_network_configs"] = [
            {"network": args.get("second_network"), "subnetwork": args.get("second_subnetwork")}
        ]
    return config


def _reservation(pool: NodePool) -> dict[str, object]:
    """Stated also where there is none: GKE's TPU pools want it so."""
    if pool.reservation is None:
        return {"consume_reservation_type": "NO_RESERVATION"}
    return {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [pool.reservation],
    }


def _changed_by_others(pool: NodePool) -> list[str]:
    """Properties that GKE or its autoscaler writes. A difference there would make the pool anew."""
    # GKE turns hyper-threads of TPU hosts off and reports that.
    threads = "nodeConfig.advancedMachineFeatures"
    # `nodeCount` is not among them: a scaled pool names none, so what the autoscaler does is no difference, and to
    # ignore it would keep the number that a fixed pool once had.
    return [threads] if isinstance(pool.size, Fixed) else [threads, "initialNodeCount"]


def _needs_new_machines(pool: NodePool) -> list[str]:
    """Changes that the provider plans in place and GKE cannot make in place.

    A slice of several hosts is not resized by hand (Error 501). The provider compares with the size there is: a pool
    that demand has already brought to its full size is kept when it becomes a fixed one.
    """
    in_place_refused = ["placementPolicy", "nodeConfig.machineType", "nodeLocations"]
    return [*in_place_refused, "nodeCount"] if pool.multi_host else in_place_refused


def _timeouts(pool: NodePool) -> pulumi.CustomTimeouts:
    minutes = f"{pool.create_timeout_s // 60}m"
    return pulumi.CustomTimeouts(create=minutes, update=minutes, delete=minutes)


def _pool_spec(name: str, args: SlicePoolArgs) -> PoolSpec:
    """The arguments as the pool of a stack file, checked by the same rules.

    Raises:
        ArgumentsError: every mistake of them.
    """
    problems = {problem.key: problem for problem in (*argument_problems(args, SlicePoolArgs), *_own_problems(args))}
    given = {key: value for key, value in args.items() if value is not None and key not in problems}
    raw: dict[str, object] = {key: given[key] for key in _OF_POOL if key in given}
    raw["slices"] = {
        "min": given.get("slices_min", 0 if raw.get("capacity") in LENT else 1),
        "max": given.get("slices_max", 1),
    }
    try:
        pool = parse_pool({**raw, "name": name}, name)
    except StackError as error:
        for problem in error.problems:
            told = {part: _as_written(getattr(problem, part), name) for part in ("key", "reason")}
            problems.setdefault(told["key"], problem.model_copy(update=told))
    if problems:
        order = ["name", *SlicePoolArgs.__annotations__, *problems]
        raise ArgumentsError(f"SlicePool {name}", sorted(problems.values(), key=lambda one: order.index(one.key)))
    return pool


_OF_POOL = (
    "generation",
    "topology",
    "machine_type",
    "capacity",
    "reservation",
    "max_run_s",
    "node_image",
    "boot_disk_gib",
    "second_nic",
    "zone",
)
"""Arguments that are keys of a stack file's pool under the same name."""


def _as_written(text: str, name: str) -> str:
    """A pool's keys, which stand below its name, as arguments."""
    return re.sub(rf"\b{re.escape(name)}\.(slices\.)?(?=[a-z])", lambda key: "slices_" if key[1] else "", text)


def _own_problems(args: Mapping[str, object]) -> Iterator[Problem]:
    """What no key of a pool says: where the cluster is, and its second network."""
    cluster, example = args.get("cluster"), "projects/my-project/locations/us-east5/clusters/my-cluster"
    if isinstance(cluster, str) and not re.fullmatch(r"projects/[^/]+/locations/[^/]+/clusters/[^/]+", cluster):
        yield Problem(
            key="cluster",
            value=cluster,
            reason="a cluster's id says project and location too; a cluster of the program has it in its `id`",
            allowed=(example,),
        )
    if args.get("second_nic") is True:
        for key in ("second_network", "second_subnetwork"):
            if args.get(key) is None:
                yield Problem(key=key, reason="with second_nic the name of this one is required")
