"""What Google's double gives back: ids as the provider forms them, and only what Google may fill in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, cloud, pool, scaled, with_cluster
from tests.cloud.everything import EACH
from tests.rig.cloud.world import CLUSTER, NODE_POOL, RESOURCE_POLICY
from tests.rig.gcp.catalogue import Property, load_catalogue
from tests.rig.gcp.values import Object, Value, plain_object

KNOWN_TO_DIFFER = {
    # GKE turns hyper-threads of TPU hosts off: without ignoreChanges the next preview is a replace.
    "nodeConfig.advancedMachineFeatures",
    # The provider suppresses what begins with `goog-gke`.
    "nodeConfig.resourceLabels",
}


def test_all_types_of_the_catalogue_are_there() -> None:
    assert sorted(token for token, _, _ in EACH) == sorted(load_catalogue().resources)


def test_ids_are_as_the_provider_forms_them(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    for token, inputs, id in EACH:
        made_id, outputs = one.create(token, inputs)
        assert made_id == id
        assert one.read(token, id) is not None
        assert outputs == one.read(token, id) or "etag" in outputs


@pytest.mark.parametrize(
    ("token", "inputs", "id"), EACH, ids=[token.rpartition(":")[2] + token for token, _, _ in EACH]
)
def test_google_fills_in_what_it_may_and_keeps_what_was_given(
    token: str, inputs: Object, id: str, tmp_path: Path
) -> None:
    one = cloud(tmp_path)
    for other, given, _ in EACH:
        one.create(other, given)
    outputs = one.read(token, id)
    assert outputs is not None
    for name in inputs:
        assert name in outputs
    fields = load_catalogue().resources[token].properties
    unknown = list(_unforeseen(outputs, inputs, dict(fields), ""))
    assert [path for path in unknown if path not in KNOWN_TO_DIFFER] == []


def _unforeseen(outputs: Object, inputs: Object, fields: dict[str, Property], start: str) -> Iterator[str]:
    """Paths that no property has, and filled-in values where the provider would plan a change away from them."""
    for name, value in outputs.items():
        path, prop = f"{start}{name}", fields.get(name)
        if prop is None:
            yield f"{path} is no property"
        elif prop.fields and prop.kind == "object" and isinstance(value, dict) and isinstance(inputs.get(name), dict):
            yield from _unforeseen(value, plain_object(inputs[name]), dict(prop.fields), f"{path}.")
        elif name not in inputs and not (prop.computed or prop.output_only or _empty(value, prop)):
            yield path
        elif prop.fields and prop.kind == "object" and isinstance(value, dict):
            yield from (text for text in _unforeseen(value, value, dict(prop.fields), f"{path}.") if " " in text)


def _empty(value: Value, prop: Property) -> bool:
    return value in (None, False, "", 0, [], {}) or value == prop.default


def test_tpu_hosts_have_their_taint_and_no_hyper_threads(tmp_path: Path) -> None:
    _, outputs = with_cluster(cloud(tmp_path)).create(NODE_POOL, pool(node__labels={"team": "a"}))
    node = plain_object(outputs["nodeConfig"])
    assert node["advancedMachineFeatures"] == {"threadsPerCore": 1}
    assert node["effectiveTaints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert "taints" not in node
    assert node["labels"] == {"team": "a"}
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert outputs["version"] == "1.35.3-gke.1737000"
    assert outputs["nodeCount"] == 4
    (group,) = outputs["instanceGroupUrls"]  # type: ignore[misc, str-unpack]
    assert str(group).startswith(
        "https://www.googleapis.com/compute/v1/projects/tpu-ray-test/zones/us-east5-b/instanceGroupManagers/gke-main-slice-"
    )


def test_hosts_without_chips_have_neither(tmp_path: Path) -> None:
    cpu = pool(placementPolicy=None, nodeCount=2, node__machineType="n2-standard-8")
    node = plain_object(with_cluster(cloud(tmp_path)).create(NODE_POOL, cpu)[1]["nodeConfig"])
    assert node["effectiveTaints"] == []
    assert "advancedMachineFeatures" not in node
    assert node["diskType"] == "pd-balanced"


@pytest.mark.parametrize(
    ("changes", "model"),
    [
        ({}, "on-demand"),
        ({"node__spot": True}, "spot"),
        ({**scaled(0, 4), "node__flexStart": True, "management": {"autoRepair": False}}, "flex-start"),
    ],
)
def test_machines_are_labelled_with_how_they_were_got(changes: dict[str, object], model: str, tmp_path: Path) -> None:
    _, outputs = with_cluster(cloud(tmp_path)).create(NODE_POOL, pool(**changes))
    labels = plain_object(plain_object(outputs["nodeConfig"])["resourceLabels"])
    assert labels["goog-gke-node-pool-provisioning-model"] == model


def test_an_autoscaled_pool_begins_at_its_minimum(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    assert one.create(NODE_POOL, pool(**scaled(0, 4)))[1]["nodeCount"] == 0
    limits = {"minNodeCount": 2, "maxNodeCount": 5}
    single = pool(name="single", placementPolicy=None, nodeCount=None, autoscaling=limits)
    assert one.create(NODE_POOL, single)[1]["nodeCount"] == 2


def test_gke_stores_no_type_beside_a_workload_policy(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    one.create(RESOURCE_POLICY, {"name": "near", "region": "us-east5"})
    placement = {"type": "COMPACT", "policyName": "near", "tpuTopology": "4x4"}
    _, outputs = one.create(NODE_POOL, pool(placementPolicy=placement))
    assert outputs["placementPolicy"] == {"type": "", "policyName": "near", "tpuTopology": "4x4"}


def test_without_its_first_pool_a_cluster_has_no_node_config(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path), nodeConfig={"machineType": "n2-standard-4"})
    outputs = one.read(CLUSTER, CLUSTER_ID)
    assert outputs is not None
    assert outputs["nodeConfig"] is None
    assert outputs["nodePools"] == []
    one.create(NODE_POOL, pool())
    assert [plain_object(made)["name"] for made in (one.read(CLUSTER, CLUSTER_ID) or {})["nodePools"]] == ["slice"]  # type: ignore[union-attr]


def test_a_first_pool_that_stays_is_shown(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path), removeDefaultNodePool=None, nodeConfig={"machineType": "n2-standard-4"})
    outputs = one.read(CLUSTER, CLUSTER_ID)
    assert outputs is not None
    assert plain_object(outputs["nodeConfig"])["machineType"] == "n2-standard-4"
    first = one.read(NODE_POOL, f"{CLUSTER_ID}/nodePools/default-pool")
    assert first is not None
    assert first["nodeCount"] == 1


def test_a_cluster_names_network_and_ranges_in_full(tmp_path: Path) -> None:
    outputs = with_cluster(cloud(tmp_path)).read(CLUSTER, CLUSTER_ID)
    assert outputs is not None
    assert outputs["network"] == "projects/tpu-ray-test/global/networks/main"
    assert outputs["subnetwork"] == "projects/tpu-ray-test/regions/us-east5/subnetworks/main"
    assert outputs["clusterIpv4Cidr"] == "10.4.0.0/14"
    assert outputs["servicesIpv4Cidr"] == "10.8.0.0/20"
    assert outputs["nodeLocations"] == []
    assert plain_object(outputs["privateClusterConfig"])["privateEndpoint"] == "172.16.0.2"


def test_a_version_goes_up_where_it_is_asked_for(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path), minMasterVersion="1.33")
    outputs = one.read(CLUSTER, CLUSTER_ID)
    assert outputs is not None
    assert outputs["masterVersion"] == "1.33.5-gke.2469000"
    assert one.update(CLUSTER, CLUSTER_ID, {"minMasterVersion": "1.34"})["masterVersion"] == "1.34.4-gke.1193000"
