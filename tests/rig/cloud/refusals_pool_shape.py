"""What GKE refuses of a node pool's name, machines, topology, placement and size."""

import re

from tests.rig.cloud import machines
from tests.rig.cloud.pool_asked import PoolAsked, policy_id
from tests.rig.cloud.refused import OperationFailed, bad_request, not_found
from tests.rig.cloud.world import RESOURCE_POLICY, World, text, whole
from tests.rig.gcp.values import plain_object

NAME = r"(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)"


def name_form(world: World, pool: PoolAsked) -> None:
    """Names have at most 40 characters: https://github.com/pulumi/pulumi-gcp/issues/1510"""
    if not re.fullmatch(NAME, pool.name):
        raise bad_request(
            f'Invalid value for field "node_pool.name": "{pool.name}". Must be a match of regex \'{NAME}\' (only '
            "lowercase alphanumerics and '-' allowed, must start with a letter and end with an alphanumeric, and must "
            "be no longer than 40 characters)."
        )


def machine_in_zone(world: World, pool: PoolAsked) -> None:
    """Zones do not have all machines: https://github.com/keras-team/kinetic/issues/305"""
    for zone in pool.zones:
        if not machines.in_zone(pool.machine_type, zone):
            raise bad_request(f'Invalid machine type "{pool.machine_type}" in zone "{zone}": GCE_NOT_FOUND')


def topology_of_single_host(world: World, pool: PoolAsked) -> None:
    """https://github.com/AI-Hypercomputer/xpk/pull/825"""
    if pool.machine is not None and pool.topology == pool.machine.topology:
        raise bad_request(
            "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from the "
            "node pool creation request if the node pool is intented to run with single-host TPU slice nodes."
        )


def unknown_topology(world: World, pool: PoolAsked) -> None:
    """A machine type makes only the topologies of its row, e.g. no 2x8 of ct6e-standard-4t; our words.

    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus#topology
    """
    if pool.topology and (pool.machine is None or not machines.makes_slices(pool.machine_type, pool.topology)):
        raise bad_request(f'TPU topology "{pool.topology}" is not valid for machine type "{pool.machine_type}".')


def compact_in_one_zone(world: World, pool: PoolAsked) -> None:
    """Compact placement is for one zone; our words.

    https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement#limitations-standard, checked in
    https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/3439
    """
    if pool.compact and len(pool.zones) > 1:
        raise bad_request(f"Compact placement is only supported in a single zone, got {', '.join(pool.zones)}.")


def compact_with_blue_green(world: World, pool: PoolAsked) -> None:
    """Compact placement goes with surge upgrades only; our words.

    https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement#limitations-standard, checked in
    https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/3439
    """
    if pool.compact and plain_object(pool.inputs.get("upgradeSettings")).get("strategy") == "BLUE_GREEN":
        raise bad_request("Blue-green upgrades are not supported for node pools with compact placement.")


def maximum_is_the_slice(world: World, pool: PoolAsked) -> None:
    """The limit per zone is looked at, also where only a total is given.

    https://github.com/vllm-project/ci-infra/pull/545
    """
    most = whole((pool.autoscaling or {}).get("maxNodeCount"))
    if pool.autoscaling is not None and pool.gang is not None and most != pool.gang:
        raise bad_request(
            f"Maximum node count {most} is not a valid size of TPU pod slice with topology {pool.topology}"
        )


def placement_of_tpu7x(world: World, pool: PoolAsked) -> None:
    """The pool is made and goes straight to ERROR: https://github.com/vllm-project/ci-infra/pull/547"""
    if pool.machine is not None and pool.machine.generation == "v7x" and pool.placement and not pool.policy_name:
        raise OperationFailed(
            f"Creation of a managed instance group with {pool.machine_type} machine type with placement policy is not "
            "supported. Use workload policy instead."
        )


def gang_size(world: World, pool: PoolAsked) -> None:
    """A slice has all its hosts or none: https://github.com/AI-Hypercomputer/xpk/issues/751"""
    if pool.gang is not None and pool.first_nodes not in (0, pool.gang):
        raise OperationFailed(
            f"Google Compute Engine: Invalid value for field 'resource.resizeBy': '{pool.first_nodes}'. Requested "
            f"invalid target size '{pool.first_nodes}' for a Managed Instance Group in the gang mode of size "
            f"'{pool.gang}'. Should be equal to the gang size."
        )


def policy_missing(world: World, pool: PoolAsked) -> None:
    """Compute Engine's answer for any missing resource.

    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680
    """
    if pool.policy_name and world.get(RESOURCE_POLICY, policy_id(pool)) is None:
        raise not_found(f"The resource '{policy_id(pool)}' was not found")


def policy_without_topology(world: World, pool: PoolAsked) -> None:
    """A workload policy has to name the topology: quoted by users with tpu7x (reports on GitHub, 2026)."""
    thing = world.get(RESOURCE_POLICY, policy_id(pool)) if pool.policy_name else None
    if thing is None or not pool.topology:
        return
    policy = plain_object(thing.outputs.get("workloadPolicy"))
    if policy and not text(policy.get("acceleratorTopology")):
        raise bad_request(
            f"{pool.machine_type} does not support TPU topology with group placement policy and workload policy at the "
            "same time"
        )


def policy_of_another_topology(world: World, pool: PoolAsked) -> None:
    """One policy for each topology; our words.

    `gcloud compute resource-policies create workload-policy --accelerator-topology` in
    https://github.com/ai-on-gke/tpu-provisioner, docs/ironwood-policy-bootstrap.sh
    """
    thing = world.get(RESOURCE_POLICY, policy_id(pool)) if pool.policy_name else None
    stated = text(plain_object(thing.outputs.get("workloadPolicy")).get("acceleratorTopology")) if thing else ""
    if stated and pool.topology and stated != pool.topology:
        raise bad_request(
            f"TPU topology {pool.topology} does not match accelerator topology {stated} of workload policy "
            f"{pool.policy_name}."
        )


def boot_disk(world: World, pool: PoolAsked) -> None:
    """Each machine series takes its own kinds of disk.

    https://github.com/rancher/harvester-cloud/issues/249; which takes what: the cluster autoscaler's machine families
    """
    if pool.disk_type and pool.disk_type not in machines.boot_disks(pool.machine_type):
        raise bad_request(f"{pool.disk_type} disk type cannot be used by {pool.machine_type} machine type.")


def duplicate_taint(world: World, pool: PoolAsked) -> None:
    """GKE taints TPU nodes itself: https://github.com/hashicorp/terraform-provider-google/issues/7928"""
    taints = pool.node.get("taints")
    declared = [plain_object(taint) for taint in taints] if isinstance(taints, list) else []
    if pool.machine is not None and any(taint.get("key") == "google.com/tpu" for taint in declared):
        raise bad_request("Found more than one taint with key google.com/tpu and effect NO_SCHEDULE.")


def unstated_private_nodes(world: World, pool: PoolAsked) -> None:
    """https://github.com/GoogleCloudPlatform/cloud-foundation-fabric/issues/1807"""
    private = plain_object(pool.cluster.get("privateClusterConfig"))
    asked = plain_object(pool.inputs.get("networkConfig"))
    if private.get("masterIpv4CidrBlock") and asked.get("podRange") and asked.get("enablePrivateNodes") is not True:
        raise bad_request("EnablePrivateNodes must be enabled for private clusters with valid masterIpv4Cidr.")


def second_interface_without_multi_networking(world: World, pool: PoolAsked) -> None:
    """Further interfaces need a cluster with multi-networking; our words.

    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods
    """
    if pool.second_interfaces and pool.cluster.get("enableMultiNetworking") is not True:
        raise bad_request("Additional node networks require a cluster with multi-networking enabled.")


def upgrades_off_in_channel(world: World, pool: PoolAsked) -> None:
    """https://github.com/kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference/issues/47

    Repair may be off today: flex-start asks for that.
    """
    channel = text(plain_object(pool.cluster.get("releaseChannel")).get("channel"))
    management = plain_object(pool.inputs.get("management"))
    if channel not in ("", "UNSPECIFIED") and management.get("autoUpgrade") is False:
        raise bad_request(f"Auto_upgrade cannot be false when release_channel {channel} is set.")


RULES = (
    name_form,
    machine_in_zone,
    topology_of_single_host,
    unknown_topology,
    compact_in_one_zone,
    compact_with_blue_green,
    maximum_is_the_slice,
    policy_missing,
    policy_without_topology,
    policy_of_another_topology,
    boot_disk,
    duplicate_taint,
    unstated_private_nodes,
    second_interface_without_multi_networking,
    upgrades_off_in_channel,
)
"""Asked when a pool is made or changed."""
