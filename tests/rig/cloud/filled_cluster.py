"""What GKE fills in of a cluster.

Which properties: terraform-provider-google-beta, resource_container_cluster.go (Read).
"""

import base64
from ipaddress import ip_network

from tests.rig.cloud.control_plane import ControlPlane
from tests.rig.cloud.filled_pool import pools_of, shown_pool
from tests.rig.cloud.held import Thing
from tests.rig.cloud.refusals_network import ranges
from tests.rig.cloud.versions import matching
from tests.rig.cloud.world import (
    IDENTITY_POOL,
    SUBNETWORK,
    World,
    digits,
    is_zone,
    last,
    mark,
    network_id,
    region_of,
    subnetwork_id,
    text,
    under,
    zones_of,
)
from tests.rig.gcp.values import Object, Value, plain_list, plain_object

SELF_LINK = "https://container.googleapis.com/v1beta1/"
POOL_FIELDS_ELSEWHERE = ("project", "location", "cluster", "deletionPolicy", "operation")
NO_CERTIFICATE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode()


def cluster_of(world: World, inputs: Object) -> str:
    """`projects/<project>/locations/<location>/clusters/<name>`."""
    location = text(inputs.get("location")) or world.settings.region
    return f"projects/{world.project(inputs)}/locations/{location}/clusters/{text(inputs.get('name'))}"


def fill_cluster(world: World, id: str, inputs: Object) -> Thing:
    """A new cluster as Google holds it."""
    location = id.split("/")[3]
    channel = text(plain_object(inputs.get("releaseChannel")).get("channel")) or "REGULAR"
    asked = text(inputs.get("minMasterVersion"))
    version = matching(world.settings.versions, asked) if asked else None
    version = version or world.settings.channels.get(channel, world.settings.versions[0])
    zones = [text(zone) for zone in plain_list(inputs.get("nodeLocations"))]
    if is_zone(location):
        zones = [location, *(zone for zone in zones if zone != location)]
    filled = _filled(world, id, inputs, channel, version)
    outputs = plain_object(under(inputs, filled))
    outputs["network"] = network_id(world, text(inputs.get("network")))
    outputs["subnetwork"] = filled["subnetwork"]
    outputs.pop("nodeConfig", None)
    return Thing(outputs, {"zones": list(zones or zones_of(location))})


def _filled(world: World, id: str, inputs: Object, channel: str, version: str) -> Object:
    project, location, name = id.split("/")[1], id.split("/")[3], last(id)
    subnetwork = subnetwork_id(world, text(inputs.get("subnetwork")), region_of(location))
    policy = plain_object(inputs.get("ipAllocationPolicy"))
    thing = world.get(SUBNETWORK, subnetwork)
    there = {} if thing is None else ranges(thing.outputs)
    pods = there.get(text(policy.get("clusterSecondaryRangeName")), "") or "10.4.0.0/14"
    services = there.get(text(policy.get("servicesSecondaryRangeName")), "") or "34.118.224.0/20"
    data_path = text(inputs.get("datapathProvider")) or "DATAPATH_PROVIDER_UNSPECIFIED"
    return {
        "project": project,
        "location": location,
        "nodeLocations": [],
        "subnetwork": subnetwork,
        "networkingMode": "VPC_NATIVE",
        "clusterIpv4Cidr": pods,
        "servicesIpv4Cidr": services,
        "tpuIpv4CidrBlock": "",
        "ipAllocationPolicy": {
            "clusterIpv4CidrBlock": pods,
            "servicesIpv4CidrBlock": services,
            "clusterSecondaryRangeName": f"gke-{name}-pods-{mark(id, 8)}",
            "servicesSecondaryRangeName": f"gke-{name}-services-{mark(id, 8)}",
            "stackType": "IPV4",
            "podCidrOverprovisionConfig": {"disabled": False},
        },
        "releaseChannel": {"channel": channel},
        "masterVersion": version,
        "nodeVersion": version,
        "emulatedVersion": "",
        "labelFingerprint": mark(f"labels of {id}", 8),
        "effectiveLabels": {},
        "selfLink": SELF_LINK + id,
        "operation": "",
        "datapathProvider": data_path,
        "defaultMaxPodsPerNode": 110,
        "enableShieldedNodes": True,
        "loggingService": "logging.googleapis.com/kubernetes",
        "monitoringService": "monitoring.googleapis.com/kubernetes",
        "loggingConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]},
        "monitoringConfig": {
            "enableComponents": ["SYSTEM_COMPONENTS", "STORAGE", "HPA", "POD", "DAEMONSET", "DEPLOYMENT"],
            "managedPrometheus": {"enabled": True},
            "advancedDatapathObservabilityConfig": {"enableMetrics": False, "enableRelay": False},
        },
        "addonsConfig": {
            "gcePersistentDiskCsiDriverConfig": {"enabled": True},
            "networkPolicyConfig": {"disabled": True},
            "dnsCacheConfig": {"enabled": data_path == "ADVANCED_DATAPATH"},
            "gcsFuseCsiDriverConfig": {"enabled": False},
        },
        "clusterAutoscaling": {"enabled": False, "autoscalingProfile": "BALANCED"},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {
                "endpoint": f"gke-{mark(id, 32)}-{world.settings.number}.{region_of(location)}.gke.goog",
                "allowExternalTraffic": False,
            },
            "ipEndpointsConfig": {"enabled": True},
        },
        "databaseEncryption": {"state": "DECRYPTED", "keyName": ""},
        "defaultSnatStatus": {"disabled": False},
        "notificationConfig": {"pubsub": {"enabled": False, "topic": ""}},
        "nodePoolDefaults": {"nodeConfigDefaults": {"loggingVariant": "DEFAULT"}},
        "podAutoscaling": {"hpaProfile": "PERFORMANCE"},
        "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"},
        "serviceExternalIpsConfig": {"enabled": False},
        "privateClusterConfig": {
            "enablePrivateNodes": False,
            "enablePrivateEndpoint": False,
            "masterGlobalAccessConfig": {"enabled": False},
            "privateEndpoint": _private_endpoint(inputs),
            "peeringName": "",
        },
    }


def _private_endpoint(inputs: Object) -> str:
    block = text(plain_object(inputs.get("privateClusterConfig")).get("masterIpv4CidrBlock"))
    return str(ip_network(block, strict=False)[2]) if block else "10.128.0.2"


def shown_cluster(world: World, id: str, thing: Thing, plane: ControlPlane | None) -> Object:
    """The cluster as Google shows it now: with its node pools, and with the API server that is handed out.

    `nodeConfig` is the first pool's; it is None once that pool is gone.
    """
    pools = {pool_id: shown_pool(pool_id, pool) for pool_id, pool in pools_of(world, id).items()}
    first = pools.get(f"{id}/nodePools/default-pool", {})
    endpoint = plane.address if plane is not None else f"34.118.{int(digits(id, 2))}.{int(digits(last(id), 2))}"
    own_zone = id.split("/")[3]
    private = plain_object(thing.outputs.get("privateClusterConfig"))
    return {
        **thing.outputs,
        "nodeLocations": [zone for zone in plain_list(thing.own.get("zones")) if zone != own_zone],
        "endpoint": endpoint,
        "masterAuth": {
            "clientCertificate": "",
            "clientCertificateConfig": {"issueClientCertificate": False},
            "clientKey": "",
            "clusterCaCertificate": (plane.ca_pem_base64 if plane is not None else "") or NO_CERTIFICATE,
        },
        "privateClusterConfig": {**private, "publicEndpoint": endpoint},
        "nodeConfig": first.get("nodeConfig"),
        "nodePools": [_inline(pool) for pool in pools.values()],
    }


def _inline(pool: Object) -> Value:
    return {name: value for name, value in pool.items() if name not in POOL_FIELDS_ELSEWHERE}


def make_identity_pool(world: World, cluster: Thing) -> None:
    """The project's identity pool, where the cluster asks for it; it is never taken away again."""
    pool = text(plain_object(cluster.outputs.get("workloadIdentityConfig")).get("workloadPool"))
    if pool:
        world.things.put(IDENTITY_POOL, pool, Thing({}))


def change_cluster(world: World, id: str, thing: Thing, changed: Object) -> Thing:
    """The cluster after a change that GKE accepts."""
    rest = {name: value for name, value in changed.items() if name not in ("minMasterVersion", "nodeVersion")}
    outputs: Object = {name: value for name, value in {**thing.outputs, **rest}.items() if value is not None}
    own = dict(thing.own)
    asked = text(changed.get("minMasterVersion"))
    if asked:
        outputs["minMasterVersion"] = asked
        outputs["masterVersion"] = matching(world.settings.versions, asked) or asked
    if "nodeLocations" in changed:
        location = id.split("/")[3]
        zones = plain_list(changed["nodeLocations"]) or list(zones_of(location))
        own["zones"] = [location, *zones] if is_zone(location) else list(zones)
    return Thing(outputs, own)
