"""What Compute Engine refuses of networks, subnetworks, routers, addresses and policies."""

from ipaddress import IPv4Network, ip_network

from tests.rig.cloud.refused import Refused, bad_request, conflict, in_use, not_found
from tests.rig.cloud.world import (
    CLUSTER,
    FIREWALL,
    NETWORK,
    NODE_POOL,
    ROUTER,
    SUBNETWORK,
    World,
    last,
    network_id,
    subnetwork_id,
    text,
)
from tests.rig.gcp.values import Object, plain_list, plain_object


def cidr(given: str) -> IPv4Network | None:
    """A range of IPv4 addresses, where the text is one."""
    try:
        network = ip_network(given, strict=False)
    except ValueError:
        return None
    return network if isinstance(network, IPv4Network) else None


def ranges(subnetwork: Object) -> dict[str, str]:
    """The ranges of a subnetwork by name; the primary one has an empty name."""
    found = {"": text(subnetwork.get("ipCidrRange"))}
    for block in map(plain_object, plain_list(subnetwork.get("secondaryIpRanges"))):
        found[text(block.get("rangeName"))] = text(block.get("ipCidrRange"))
    return found


def taken(world: World, token: str, id: str) -> None:
    """https://github.com/GoogleCloudPlatform/magic-modules/pull/6901; of a subnetwork:
    https://github.com/GoogleCloudPlatform/terraform-dynamic-python-webapp/issues/60
    """
    if world.get(token, id) is not None:
        raise conflict(f"The resource '{id}' already exists")


def network_missing(world: World, inputs: Object) -> None:
    """https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680"""
    id = network_id(world, text(inputs.get("network")))
    if world.get(NETWORK, id) is None:
        raise not_found(f"The resource '{id}' was not found")


def router_missing(world: World, router: str) -> None:
    """https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680"""
    if world.get(ROUTER, router) is None:
        raise not_found(f"The resource '{router}' was not found")


def range_taken(world: World, id: str, inputs: Object) -> None:
    """https://github.com/terraform-google-modules/terraform-google-network/issues/20"""
    network = network_id(world, text(inputs.get("network")))
    others = {
        other_id: other.outputs
        for other_id, other in world.every(SUBNETWORK).items()
        if other_id != id and network_id(world, text(other.outputs.get("network"))) == network
    }
    for name, given in ranges(inputs).items():
        mine = cidr(given)
        for other_id, other in others.items():
            for theirs in map(cidr, ranges(other).values()):
                if mine is not None and theirs is not None and mine.overlaps(theirs):
                    _refuse_range(name, given, last(other_id), other_id.split("/")[3])


def ranges_of_one(world: World, id: str, inputs: Object) -> None:
    """Ranges of one subnetwork must not overlap either; the answer is the same.

    https://github.com/terraform-google-modules/terraform-google-network/issues/20
    """
    named = list(ranges(inputs).items())
    for place, (_, given) in enumerate(named):
        for name, other in named[place + 1 :]:
            mine, theirs = cidr(given), cidr(other)
            if mine is not None and theirs is not None and mine.overlaps(theirs):
                _refuse_range(name, other, last(id), id.split("/")[3])


def _refuse_range(name: str, given: str, subnetwork: str, region: str) -> None:
    field = "resource.secondaryIpRanges[0].ipCidrRange" if name else "resource.ipCidrRange"
    raise bad_request(
        f"Invalid value for field '{field}': '{given}'. Invalid IPCidrRange: {given} conflicts with existing "
        f"subnetwork '{subnetwork}' in region '{region}'.",
        "invalid",
    )


def secondary_range_changed(world: World, old: Object, changed: Object) -> None:
    """https://github.com/hashicorp/terraform-provider-kubernetes/issues/565"""
    if "secondaryIpRanges" not in changed:
        return
    before, after = ranges(old), ranges(changed)
    for name, given in after.items():
        if name and name in before and before[name] != given:
            raise bad_request(
                f"Invalid value for field 'resource.secondaryIpRanges[0].ipCidrRange': '{given}'. Existing secondary "
                f"range cannot be modified: {given}.",
                "invalid",
            )


def secondary_ranges_exchanged(world: World, old: Object, changed: Object) -> None:
    """https://github.com/hashicorp/terraform-provider-google/issues/2570"""
    if "secondaryIpRanges" not in changed:
        return
    before, after = ranges(old), ranges(changed)
    added = [after[name] for name in after if name and name not in before]
    removed = [before[name] for name in before if name and name not in after]
    if added and removed:
        raise bad_request(
            "Invalid value for field 'resource.secondaryIpRanges': ''. Cannot add and remove secondary IP ranges in "
            f"the same request. Added ranges: [{', '.join(added)}]. Removed ranges: [{', '.join(removed)}].",
            "invalid",
        )


def secondary_range_in_use(world: World, id: str, old: Object, changed: Object) -> None:
    """https://github.com/hashicorp/terraform-provider-google/issues/7474 (which gives no words: ours)"""
    if "secondaryIpRanges" not in changed:
        return
    gone = ranges(old).keys() - ranges(changed).keys()
    for cluster_id, cluster in world.every(CLUSTER).items():
        policy = plain_object(cluster.outputs.get("ipAllocationPolicy"))
        used = {policy.get("clusterSecondaryRangeName"), policy.get("servicesSecondaryRangeName")} & gone
        if used and _subnetwork_of(world, cluster.outputs) == id:
            raise in_use("subnetwork", id, cluster_id)


def nat_of(world: World, nat: Object, router: str) -> bool:
    """Whether a NAT belongs to a router."""
    parts = router.split("/")
    return (world.project(nat), world.region(nat), last(text(nat.get("router")))) == (parts[1], parts[3], parts[5])


def network_in_use(world: World, id: str) -> None:
    """https://github.com/murphye/cheap-gke-cluster/issues/8"""
    for token in (SUBNETWORK, ROUTER, FIREWALL, CLUSTER):
        for user, thing in world.every(token).items():
            if network_id(world, text(thing.outputs.get("network"))) == id:
                raise Refused(
                    f"Error waiting for Deleting Network: The network resource '{id}' is already being used by '{user}'"
                )


def subnetwork_in_use(world: World, id: str) -> None:
    """https://github.com/genevieve/leftovers/issues/6"""
    for user, cluster in world.every(CLUSTER).items():
        if _subnetwork_of(world, cluster.outputs) == id:
            raise in_use("subnetwork", id, user)
    for user, pool in world.every(NODE_POOL).items():
        network = plain_object(pool.outputs.get("networkConfig"))
        for one in map(plain_object, plain_list(network.get("additionalNodeNetworkConfigs"))):
            if subnetwork_id(world, text(one.get("subnetwork")), id.split("/")[3]) == id:
                raise in_use("subnetwork", id, user)


def _subnetwork_of(world: World, cluster: Object) -> str:
    return subnetwork_id(world, text(cluster.get("subnetwork")), world.settings.region)


def policy_in_use(world: World, id: str) -> None:
    """As with every resource of Compute Engine: https://github.com/genevieve/leftovers/issues/6"""
    for user, pool in world.every(NODE_POOL).items():
        policy = text(plain_object(pool.outputs.get("placementPolicy")).get("policyName"))
        zones = plain_list(pool.outputs.get("nodeLocations"))
        region = text(zones[0]).rpartition("-")[0] if zones else ""
        if policy and last(policy) == last(id) and region == id.split("/")[3]:
            raise in_use("resource_policy", id, user)
