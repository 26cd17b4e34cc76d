"""What GKE refuses of a cluster."""

import re

from tests.rig.cloud.pool_asked import default_pool, pool_asked
from tests.rig.cloud.refusals_network import cidr, network_missing, ranges
from tests.rig.cloud.refusals_pool import refuse_machines
from tests.rig.cloud.refused import bad_request, conflict, not_found
from tests.rig.cloud.versions import at_least, matching
from tests.rig.cloud.world import (
    CLUSTER,
    COMPUTE_URL,
    SUBNETWORK,
    World,
    network_id,
    region_of,
    subnetwork_id,
    text,
)
from tests.rig.gcp.values import Object, plain_list, plain_object

NAME = r"(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)"
RAY_FROM = "1.30.0-gke.1747000"


def name_form(world: World, id: str, inputs: Object) -> None:
    """https://github.com/rancher/rancher/issues/12720"""
    name = text(inputs.get("name"))
    if not re.fullmatch(NAME, name):
        raise bad_request(
            f'Invalid value for field "cluster.name": "{name}". Must be a match of regex \'{NAME}\' (only lowercase '
            "alphanumerics and '-' allowed, must start with a letter and end with an alphanumeric, and must be no "
            "longer than 40 characters)."
        )


def name_taken(world: World, id: str, inputs: Object) -> None:
    """https://github.com/GoogleCloudPlatform/gke-logging-sinks-demo/pull/11"""
    if world.get(CLUSTER, id) is not None:
        raise conflict(f"Already exists: {id}.")


def network_there(world: World, id: str, inputs: Object) -> None:
    """https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680"""
    network_missing(world, inputs)


def subnetwork_missing(world: World, id: str, inputs: Object) -> None:
    """https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680"""
    given = text(inputs.get("subnetwork"))
    subnetwork = subnetwork_id(world, given, region_of(id.split("/")[3]))
    if given and world.get(SUBNETWORK, subnetwork) is None:
        raise not_found(f"The resource '{subnetwork}' was not found")


def same_secondary_range(world: World, id: str, inputs: Object) -> None:
    """https://github.com/gruntwork-io/terraform-google-gke/issues/118"""
    policy = plain_object(inputs.get("ipAllocationPolicy"))
    pods, services = policy.get("clusterSecondaryRangeName"), policy.get("servicesSecondaryRangeName")
    if pods and pods == services:
        raise bad_request(f"Pod secondary range name ({pods}) should not be the same as service secondary range name.")


def secondary_range_missing(world: World, id: str, inputs: Object) -> None:
    """https://github.com/fabianlee/gcp-gke-clusters-ingress/issues/2"""
    given = text(inputs.get("subnetwork"))
    subnetwork = world.get(SUBNETWORK, subnetwork_id(world, given, region_of(id.split("/")[3])))
    policy = plain_object(inputs.get("ipAllocationPolicy"))
    there = {} if subnetwork is None else ranges(subnetwork.outputs)
    named = (("Pod", "clusterSecondaryRangeName"), ("Services", "servicesSecondaryRangeName"))
    for what, field in named:
        name = text(policy.get(field))
        if name and name not in there:
            network = COMPUTE_URL + network_id(world, text(inputs.get("network")))
            raise bad_request(
                f'{what} secondary range "{name}" not found in network "{network}", subnetwork '
                f'"{given.rpartition("/")[2]}".'
            )


def control_plane_range_taken(world: World, id: str, inputs: Object) -> None:
    """Quoted in Google's documentation of Config Controller, where its cluster's range conflicts."""
    given = text(plain_object(inputs.get("privateClusterConfig")).get("masterIpv4CidrBlock"))
    mine, network = cidr(given), network_id(world, text(inputs.get("network")))
    theirs = [
        cidr(block)
        for thing in world.every(SUBNETWORK).values()
        if network_id(world, text(thing.outputs.get("network"))) == network
        for block in ranges(thing.outputs).values()
    ]
    theirs += [
        cidr(text(plain_object(thing.outputs.get("privateClusterConfig")).get("masterIpv4CidrBlock")))
        for other, thing in world.every(CLUSTER).items()
        if other != id and network_id(world, text(thing.outputs.get("network"))) == network
    ]
    if mine is not None and any(block is not None and mine.overlaps(block) for block in theirs):
        raise bad_request(
            f"Invalid value for field PrivateClusterConfig.MasterIpv4CidrBlock: {given} conflicts with an existing "
            "subnet in one of the peered VPCs."
        )


def control_plane_range_size(world: World, id: str, inputs: Object) -> None:
    """A /28, in our words: https://github.com/hashicorp/terraform-provider-google/pull/2996, and
    https://cloud.google.com/kubernetes-engine/docs/how-to/private-clusters#limitations
    """
    given = text(plain_object(inputs.get("privateClusterConfig")).get("masterIpv4CidrBlock"))
    block = cidr(given)
    if given and (block is None or block.prefixlen != 28):
        raise bad_request(f"Invalid value for field PrivateClusterConfig.MasterIpv4CidrBlock: {given} is not a /28.")


def unsupported_version(world: World, id: str, inputs: Object) -> None:
    """https://github.com/hashicorp/terraform-provider-google/issues/2149"""
    asked = text(inputs.get("minMasterVersion"))
    if asked and matching(world.settings.versions, asked) is None:
        raise bad_request(f'Master version "{asked}" is unsupported.')


def version_of_ray(world: World, id: str, inputs: Object) -> None:
    """Our words; https://docs.cloud.google.com/kubernetes-engine/docs/add-on/ray-on-gke/how-to/enable-ray-on-gke"""
    asked = text(inputs.get("minMasterVersion"))
    version = matching(world.settings.versions, asked) or ""
    if asked and ray_operator(inputs) and not at_least(version, RAY_FROM):
        raise bad_request(f"Ray operator addon requires GKE version {RAY_FROM} or later, got {version}.")


def ray_operator(cluster: Object) -> bool:
    """Whether the Ray operator add-on is on."""
    configs = plain_list(plain_object(cluster.get("addonsConfig")).get("rayOperatorConfigs"))
    return any(plain_object(config).get("enabled") is True for config in configs)


def first_pool(world: World, id: str, inputs: Object) -> None:
    """The first pool has to be possible, also where it is deleted at once: https://github.com/keras-team/kinetic/issues/305"""
    refuse_machines(world, pool_asked(world, default_pool(id, inputs)))


def refuse_cluster_change(world: World, id: str, changed: Object) -> None:
    """Refuse a change of a cluster.

    Raises:
        Refused: with the first reason.
    """
    unsupported_version(world, id, changed)


RULES = (
    name_form,
    name_taken,
    network_there,
    subnetwork_missing,
    same_secondary_range,
    secondary_range_missing,
    control_plane_range_size,
    control_plane_range_taken,
    unsupported_version,
    version_of_ray,
    first_pool,
)


def refuse_cluster(world: World, id: str, inputs: Object) -> None:
    """Refuse a new cluster before anything is made.

    Raises:
        Refused: with the first reason.
    """
    for rule in RULES:
        rule(world, id, inputs)
