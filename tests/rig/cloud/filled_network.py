"""What Compute Engine fills in of networks and what belongs to them."""

from ipaddress import ip_network

from tests.rig.cloud.held import Thing
from tests.rig.cloud.refusals_network import cidr
from tests.rig.cloud.world import COMPUTE_URL, CREATED, World, digits, last, mark, network_id, text, under
from tests.rig.gcp.values import Object, plain_object


def global_id(kind: str, world: World, inputs: Object) -> str:
    return f"projects/{world.project(inputs)}/global/{kind}/{text(inputs.get('name'))}"


def regional_id(kind: str, world: World, inputs: Object) -> str:
    return f"projects/{world.project(inputs)}/regions/{world.region(inputs)}/{kind}/{text(inputs.get('name'))}"


def nat_id(world: World, inputs: Object) -> str:
    """Without `projects/`: `<project>/<region>/<router>/<name>`."""
    router = last(text(inputs.get("router")))
    return f"{world.project(inputs)}/{world.region(inputs)}/{router}/{text(inputs.get('name'))}"


def router_of(world: World, nat: Object) -> str:
    """Id of the router of a NAT."""
    router = last(text(nat.get("router")))
    return f"projects/{world.project(nat)}/regions/{world.region(nat)}/routers/{router}"


def _thing(id: str, inputs: Object, filled: Object) -> Thing:
    project = id.split("/")[1]
    return Thing(plain_object(under(inputs, {"project": project, "selfLink": COMPUTE_URL + id, **filled})))


def fill_network(world: World, id: str, inputs: Object) -> Thing:
    number = digits(id, 19)
    return _thing(
        id,
        inputs,
        {
            "autoCreateSubnetworks": True,
            "mtu": 1460,
            "routingMode": "REGIONAL",
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
            "bgpBestPathSelectionMode": "LEGACY",
            "bgpInterRegionCost": "",
            "bgpAlwaysCompareMed": False,
            "deleteDefaultRoutesOnCreate": False,
            "gatewayIpv4": "",
            "internalIpv6Range": "",
            "networkId": number,
            "numericId": number,
        },
    )


def fill_subnetwork(world: World, id: str, inputs: Object) -> Thing:
    block = cidr(text(inputs.get("ipCidrRange")))
    thing = _thing(
        id,
        inputs,
        {
            "region": world.region(inputs),
            "gatewayAddress": str(block[1]) if block is not None else "",
            "fingerprint": mark(id, 11) + "=",
            "creationTimestamp": CREATED,
            "subnetworkId": int(digits(id, 15)),
            "privateIpGoogleAccess": False,
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            "secondaryIpRanges": [],
            "state": "",
            "ipv6CidrRange": "",
            "ipv6GceEndpoint": "",
            "internalIpv6Prefix": "",
            "externalIpv6Prefix": "",
        },
    )
    return Thing({**thing.outputs, "network": COMPUTE_URL + network_id(world, text(inputs.get("network")))})


def fill_router(world: World, id: str, inputs: Object) -> Thing:
    thing = _thing(id, inputs, {"region": world.region(inputs), "creationTimestamp": CREATED})
    return Thing({**thing.outputs, "network": COMPUTE_URL + network_id(world, text(inputs.get("network")))})


def fill_nat(world: World, id: str, inputs: Object) -> Thing:
    filled: Object = {
        "project": world.project(inputs),
        "region": world.region(inputs),
        "type": "PUBLIC",
        "autoNetworkTier": "PREMIUM",
        "endpointTypes": ["ENDPOINT_TYPE_VM"],
        "enableDynamicPortAllocation": False,
        "enableEndpointIndependentMapping": False,
        "icmpIdleTimeoutSec": 30,
        "udpIdleTimeoutSec": 30,
        "tcpEstablishedIdleTimeoutSec": 1200,
        "tcpTransitoryIdleTimeoutSec": 30,
        "tcpTimeWaitTimeoutSec": 120,
        "minPortsPerVm": 0,
        "natIps": [],
        "drainNatIps": [],
    }
    return Thing(plain_object(under(inputs, filled)))


def fill_policy(world: World, id: str, inputs: Object) -> Thing:
    return _thing(id, inputs, {"region": world.region(inputs)})


def fill_address(world: World, id: str, inputs: Object) -> Thing:
    filled = _address(id, inputs)
    if "/regions/" in id:
        filled |= {
            "region": world.region(inputs),
            "addressId": digits(id, 19),
            "networkTier": "PREMIUM",
            "purpose": "",
            "subnetwork": "",
            "users": [],
        }
    return _thing(id, inputs, filled)


def _address(id: str, inputs: Object) -> Object:
    length = inputs.get("prefixLength")
    at = f"10.{int(digits(id, 2))}.0.0" if length else f"34.120.{int(digits(id, 2))}.{int(digits(last(id), 2))}"
    return {
        "address": str(ip_network(f"{at}/{length}", strict=False)[0]) if length else at,
        "addressType": "EXTERNAL",
        "prefixLength": 0,
        "creationTimestamp": CREATED,
        "labelFingerprint": "42WmSpB8rSM=",
        "effectiveLabels": {},
    }


def fill_firewall(world: World, id: str, inputs: Object) -> Thing:
    filled: Object = {"creationTimestamp": CREATED, "direction": "INGRESS", "priority": 1000, "destinationRanges": []}
    thing = _thing(id, inputs, filled)
    return Thing({**thing.outputs, "network": COMPUTE_URL + network_id(world, text(inputs.get("network")))})
