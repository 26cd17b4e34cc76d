"""Every edit that was observed through the engine, at the level of Diff.

The start is the observed one: what the program declares, and a state with what GKE had filled in.
"""

import json
from typing import Any

import pytest

from tests.rig.gcp.catalogue import DATA, load_catalogue
from tests.rig.gcp.check import check_inputs
from tests.rig.gcp.diff import Difference, describe, plan_update
from tests.rig.gcp.settings import Settings
from tests.rig.gcp.values import UNKNOWN, Object, Value, parse_path, with_path

EDITS: list[dict[str, Any]] = json.loads((DATA / "edits.json").read_text())["edits"]
SETTINGS = Settings(project="p", zone="us-east5-b")
TAGS = "nodeConfig.resourceManagerTags"
CLUSTER = load_catalogue().resources["gcp:container/cluster:Cluster"]
POOL = load_catalogue().resources["gcp:container/nodePool:NodePool"]

CLUSTER_INPUTS: Object = {
    "location": "us-east5-b",
    "removeDefaultNodePool": True,
    "initialNodeCount": 1,
    "deletionProtection": False,
    "addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]},
    "releaseChannel": {"channel": "RAPID"},
    "workloadIdentityConfig": {"workloadPool": "p.svc.id.goog"},
}
CLUSTER_FILLED: Object = {
    "name": "c-1234567",
    "project": "p",
    "deletionPolicy": "DELETE",
    "datapathProvider": "LEGACY_DATAPATH",
    "network": "projects/p/global/networks/default",
    "subnetwork": "projects/p/regions/us-east5/subnetworks/default",
    "enableShieldedNodes": True,
    "networkingMode": "VPC_NATIVE",
    "masterVersion": "1.34.1-gke.1",
    "nodeVersion": "1.34.1-gke.1",
    "endpoint": "127.0.0.1",
    "nodeConfig": {"machineType": "e2-medium", "diskSizeGb": 100, "diskType": "pd-balanced", "spot": False},
    "privateClusterConfig": {
        "enablePrivateNodes": False,
        "enablePrivateEndpoint": False,
        "privateEndpoint": "10.0.0.2",
    },
    "pulumiLabels": {"goog-pulumi-provisioned": "true"},
    "effectiveLabels": {"goog-pulumi-provisioned": "true"},
}
POOL_INPUTS: Object = {
    "cluster": "projects/p/locations/us-east5-b/clusters/c-1234567",
    "nodeCount": 4,
    "nodeLocations": ["us-east5-b"],
    "maxPodsPerNode": 15,
    "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
    "nodeConfig": {
        "machineType": "ct6e-standard-4t",
        "spot": True,
        "labels": {"team": "a"},
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        "gvnic": {"enabled": True},
        "diskType": "hyperdisk-balanced",
        "diskSizeGb": 100,
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    },
}
POOL_FILLED: Object = {
    "name": "tpu-1234567",
    "project": "p",
    "location": "us-east5-b",
    "deletionPolicy": "DELETE",
    "initialNodeCount": 4,
    "version": "1.34.1-gke.1",
    "management": {"autoRepair": True, "autoUpgrade": True},
    "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
    "instanceGroupUrls": ["https://www.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instanceGroupManagers/g"],
    "networkConfig": {"enablePrivateNodes": False, "podRange": "pods"},
}
POOL_FILLED_NODES: Object = {
    "imageType": "COS_CONTAINERD",
    "serviceAccount": "default",
    "metadata": {"disable-legacy-endpoints": "true"},
    "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": False},
    "advancedMachineFeatures": {"threadsPerCore": 1},
    "effectiveTaints": [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}],
    "resourceLabels": {"goog-gke-node-pool-provisioning-model": "spot"},
}

Change = list[tuple[str, Value]]
AFFINITY = "nodeConfig.reservationAffinity"
POOL_EDITS: dict[str, Change] = {
    "no edit, advancedMachineFeatures ignored": [],
    "no edit, nothing ignored": [],
    "topology 4x4->8x8": [("placementPolicy.tpuTopology", "8x8")],
    "topology edit + replace_on_changes placementPolicy": [("placementPolicy.tpuTopology", "8x8")],
    "placement policy removed": [("placementPolicy", None)],
    "node_count 4->8": [("nodeCount", 8)],
    "machine type": [("nodeConfig.machineType", "ct6e-standard-8t")],
    "spot off": [("nodeConfig.spot", False)],
    "spot removed": [("nodeConfig.spot", None)],
    "label changed": [("nodeConfig.labels.team", "b")],
    "labels removed": [("nodeConfig.labels", None)],
    "disk size": [("nodeConfig.diskSizeGb", 200)],
    "disk type": [("nodeConfig.diskType", "pd-balanced")],
    "scopes changed": [("nodeConfig.oauthScopes", ["https://www.googleapis.com/auth/logging.write"])],
    "reservation set": [
        (
            AFFINITY,
            {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["r"],
            },
        ),
        ("nodeConfig.spot", False),
    ],
    "flex start": [("nodeConfig.flexStart", True), ("nodeConfig.spot", False)],
    "max_run_duration": [("nodeConfig.maxRunDuration", "3600s")],
    "taint google.com/tpu declared": [
        ("nodeConfig.taints", [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}])
    ],
    "zone changed": [("nodeLocations", ["us-east5-a"])],
    "max pods": [("maxPodsPerNode", 32)],
    "auto repair off": [("management", {"autoRepair": False})],
    "upgrade settings": [("upgradeSettings", {"maxSurge": 0, "maxUnavailable": 1})],
    "node_count -> autoscaling 0..4": [("nodeCount", None), ("autoscaling", {"minNodeCount": 0, "maxNodeCount": 4})],
    "autoscaling and initial 0": [
        ("nodeCount", None),
        ("autoscaling", {"minNodeCount": 0, "maxNodeCount": 4}),
        ("initialNodeCount", 0),
    ],
    "queued provisioning": [("queuedProvisioning", {"enabled": True})],
    "name fixed": [("name", "fixed")],
    "version pinned": [("version", "1.34.1-gke.1")],
    "gvnic off": [("nodeConfig.gvnic.enabled", False)],
    "workload metadata removed": [("nodeConfig.workloadMetadataConfig", None)],
    "image type": [("nodeConfig.imageType", "UBUNTU_CONTAINERD")],
}
CLUSTER_EDITS: dict[str, Change] = {
    "cluster: deletion protection on": [("deletionProtection", True)],
    "cluster: initial_node_count 1->2": [("initialNodeCount", 2)],
    "cluster: ray add-on off": [("addonsConfig.rayOperatorConfigs[0].enabled", False)],
    "cluster: addons removed": [("addonsConfig", None)],
    "cluster: channel": [("releaseChannel.channel", "REGULAR")],
    "cluster: node_config given": [("nodeConfig", {"machineType": "e2-small"})],
    "cluster: dataplane v2": [("datapathProvider", "ADVANCED_DATAPATH")],
    "cluster: workload identity removed": [("workloadIdentityConfig", None)],
    "cluster: location": [("location", "us-east5-a")],
    "cluster: description": [("description", "d")],
    "cluster: gcs fuse on": [("addonsConfig.gcsFuseCsiDriverConfig", {"enabled": True})],
    "cluster: private nodes": [
        ("privateClusterConfig", {"enablePrivateNodes": True, "masterIpv4CidrBlock": "172.16.0.0/28"})
    ],
    "cluster: remove_default_node_pool off": [("removeDefaultNodePool", False)],
    "cluster: managed prometheus": [("monitoringConfig", {"managedPrometheus": {"enabled": True}})],
}


def edited(inputs: Object, change: Change) -> Object:
    """Inputs after an edit."""
    for path, value in change:
        inputs = with_path(inputs, parse_path(path), value)
    return inputs


def state_of_pool() -> Object:
    """A pool as it is read back."""
    nodes = POOL_INPUTS["nodeConfig"]
    assert isinstance(nodes, dict)
    return {**POOL_INPUTS, **POOL_FILLED, "nodeConfig": {**nodes, **POOL_FILLED_NODES}}


def differ_cluster(change: Change) -> Difference:
    """Check and Diff of the cluster after an edit."""
    olds = check_inputs(CLUSTER, "c", CLUSTER_INPUTS, {}).inputs | {"name": "c-1234567"}
    checked = check_inputs(CLUSTER, "c", edited(CLUSTER_INPUTS, change), olds)
    assert checked.failures == []
    state = {**CLUSTER_INPUTS, **CLUSTER_FILLED}
    return describe(plan_update(CLUSTER, checked.inputs, state, SETTINGS), checked.inputs)


def differ_pool(change: Change, ignored: list[str]) -> Difference:
    """Check and Diff of the pool after an edit."""
    olds = check_inputs(POOL, "tpu", POOL_INPUTS, {}).inputs | {"name": "tpu-1234567"}
    checked = check_inputs(POOL, "tpu", edited(POOL_INPUTS, change), olds)
    assert checked.failures == []
    return describe(plan_update(POOL, checked.inputs, state_of_pool(), SETTINGS, ignored), checked.inputs)


def told(resource: str, answer: Difference, replace_on: tuple[str, ...] = ()) -> dict[str, Any]:
    """An answer in the observations' form; `replace_on` is applied as the engine does to what a provider answers."""
    replaces = set(answer.replaces) | {name for name in replace_on if name in answer.properties}
    return {
        "resource": resource,
        "operation": "replace" if replaces else "update",
        "changed": sorted(path for path in answer.kinds if path != TAGS),
        "replace": sorted(replaces),
    }


def planned(edit: str) -> list[dict[str, Any]]:
    """What the stand-in plans for an edit of the program."""
    ignored = [] if edit == "no edit, nothing ignored" else ["nodeConfig.advancedMachineFeatures"]
    replace_on = ("placementPolicy",) if "replace_on_changes" in edit else ()
    cluster = differ_cluster(CLUSTER_EDITS.get(edit, []))
    change = list(POOL_EDITS.get(edit, []))
    if cluster.replaces:
        # The engine does not know the new cluster's id yet.
        change.append(("cluster", UNKNOWN))
    pool = differ_pool(change, ignored)
    return [told(name, answer, replace_on) for name, answer in (("c", cluster), ("tpu", pool)) if answer.changed]


def test_all_edits_are_replayed() -> None:
    assert len(EDITS) == 44
    assert [row["edit"] for row in EDITS] == [*POOL_EDITS, *CLUSTER_EDITS]


@pytest.mark.parametrize("row", EDITS, ids=[row["edit"] for row in EDITS])
def test_the_stand_in_answers_an_edit_as_observed(row: dict[str, Any]) -> None:
    expected = [{**part, "changed": sorted(part["changed"])} for part in row["planned"]]
    assert planned(row["edit"]) == expected


def test_a_resource_that_the_program_named_is_deleted_before_its_replacement_is_made() -> None:
    assert differ_pool([("maxPodsPerNode", 32)], []).delete_first is False
    assert differ_pool([("name", "fixed")], []).delete_first is True


def test_any_difference_in_a_node_config_also_lists_its_computed_tags() -> None:
    ignored = ["nodeConfig.advancedMachineFeatures"]
    assert differ_pool([("nodeConfig.machineType", "ct6e-standard-8t")], ignored).kinds[TAGS] == "update"
    assert TAGS not in differ_pool([("nodeCount", 8)], ignored).kinds


def test_in_a_replace_a_change_inside_a_block_that_forces_one_is_a_reason_too() -> None:
    change: Change = [("maxPodsPerNode", 32), ("nodeConfig.machineType", "ct6e-standard-8t")]
    assert (
        differ_pool(change, ["nodeConfig.advancedMachineFeatures"]).kinds["nodeConfig.machineType"] == "update-replace"
    )
