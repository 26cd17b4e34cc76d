"""Inputs that Google accepts, for tests to spoil in one place."""

from pathlib import Path

from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import CLUSTER, NETWORK, SUBNETWORK
from tests.rig.gcp.values import Object, plain_object

PROJECT = "tpu-ray-test"
CLUSTER_ID = f"projects/{PROJECT}/locations/us-east5-b/clusters/main"


def cloud(folder: Path, **settings: object) -> Cloud:
    """A cloud with these settings and nothing in it."""
    write_settings(folder, Settings.model_validate(settings))
    return Cloud(folder)


def subnetwork(**changes: object) -> Object:
    secondary: list[Object] = [
        {"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"},
        {"rangeName": "services", "ipCidrRange": "10.8.0.0/20"},
    ]
    base: Object = {
        "name": "main",
        "region": "us-east5",
        "network": "main",
        "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": list(secondary),
    }
    return with_changes(base, changes)


def cluster(**changes: object) -> Object:
    base: Object = {
        "name": "main",
        "location": "us-east5-b",
        "network": "main",
        "subnetwork": "main",
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "deletionProtection": False,
        "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
        "privateClusterConfig": {"enablePrivateNodes": True, "masterIpv4CidrBlock": "172.16.0.0/28"},
        "releaseChannel": {"channel": "RAPID"},
        "workloadIdentityConfig": {"workloadPool": f"{PROJECT}.svc.id.goog"},
        "addonsConfig": {
            "rayOperatorConfigs": [{"enabled": True}],
            "gcsFuseCsiDriverConfig": {"enabled": True},
        },
        "datapathProvider": "ADVANCED_DATAPATH",
    }
    return with_changes(base, changes)


def pool(**changes: object) -> Object:
    """A slice of v6e 4x4: four hosts of four chips. A change with `node__` before its name is one of the machines'."""
    base: Object = {
        "name": "slice",
        "cluster": CLUSTER_ID,
        "nodeLocations": ["us-east5-b"],
        "nodeCount": 4,
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
        "networkConfig": {"enablePrivateNodes": True},
        "nodeConfig": {
            "machineType": "ct6e-standard-4t",
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        },
    }
    return with_changes(base, changes)


def scaled(least: int, most: int) -> dict[str, object]:
    """The changes that let the autoscaler decide."""
    limits = {"minNodeCount": least, "maxNodeCount": most, "locationPolicy": "ANY"}
    return {"nodeCount": None, "initialNodeCount": least, "autoscaling": limits}


def flex_start(**changes: object) -> Object:
    """A slice on flex-start machines, as Google accepts it."""
    usual: dict[str, object] = {**scaled(0, 4), "management": {"autoRepair": False}, "node__flexStart": True}
    return pool(**{**usual, **changes})


def queued(**changes: object) -> Object:
    """A slice on queued machines, as Google accepts it."""
    return pool(**{**scaled(0, 4), "queuedProvisioning": {"enabled": True}, **changes})


def with_changes(base: Object, changes: dict[str, object]) -> Object:
    """The inputs with some replaced; None takes one away."""
    result: dict[str, object] = dict(base)
    node: dict[str, object] = dict(plain_object(base.get("nodeConfig")))
    for name, value in changes.items():
        if name.startswith("node__"):
            node[name.removeprefix("node__")] = value
        else:
            result[name] = value
    if "nodeConfig" in base:
        result["nodeConfig"] = {name: value for name, value in node.items() if value is not None}
    return {name: value for name, value in result.items() if value is not None}  # type: ignore[misc]


def with_network(cloud: Cloud) -> Cloud:
    """A network and a subnetwork are made."""
    cloud.create(NETWORK, {"name": "main", "autoCreateSubnetworks": False})
    cloud.create(SUBNETWORK, subnetwork())
    return cloud


def with_cluster(cloud: Cloud, **changes: object) -> Cloud:
    """A network and a cluster are made."""
    with_network(cloud).create(CLUSTER, cluster(**changes))
    return cloud
