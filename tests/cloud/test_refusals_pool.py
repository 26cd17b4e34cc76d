"""Node pools beside what else there is, and their changes: what Google's double refuses, one test for each rule."""

from pathlib import Path

from tests.cloud.asked import CLUSTER_ID, cloud, cluster, flex_start, pool, subnetwork, with_cluster
from tests.cloud.rules import of, refusal, refused_change
from tests.rig.cloud import refusals_pool as rules
from tests.rig.cloud.world import ACCOUNT, CLUSTER, NETWORK, NODE_POOL, SUBNETWORK

ID = f"{CLUSTER_ID}/nodePools/slice"


@of(rules.name_taken)
def test_a_second_pool_of_the_same_name_is_refused_in_the_providers_words(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    made.create(NODE_POOL, pool())
    assert refusal(made, NODE_POOL, pool()) == f"resource - {ID} - already exists"


@of(rules.cluster_missing)
def test_a_pool_of_no_cluster_is_refused(tmp_path: Path) -> None:
    assert refusal(cloud(tmp_path), NODE_POOL, pool()) == (
        f"error creating NodePool: googleapi: Error 404: Not found: {CLUSTER_ID}., notFound"
    )


@of(rules.version_of_tpu7x)
def test_tpu7x_is_refused_below_its_version(tmp_path: Path) -> None:
    made = cloud(tmp_path, region="us-central1", zone="us-central1-c")
    made.create(NETWORK, {"name": "main"})
    made.create(SUBNETWORK, subnetwork(region="us-central1"))
    made.create(CLUSTER, cluster(location="us-central1-c", minMasterVersion="1.33.5-gke.2469000"))
    wanted = pool(
        cluster="projects/tpu-ray-test/locations/us-central1-c/clusters/main",
        nodeLocations=["us-central1-c"],
        nodeCount=1,
        placementPolicy=None,
        node__machineType="tpu7x-standard-4t",
    )
    message = refusal(made, NODE_POOL, wanted)
    assert "tpu7x-standard-4t requires GKE version 1.34.0-gke.2201000 or later, got 1.33.5-gke.2469000" in message


@of(rules.version_of_flex_start)
def test_flex_start_of_tpus_is_refused_below_its_version(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path), minMasterVersion="1.32")
    message = refusal(made, NODE_POOL, flex_start())
    assert "requires GKE version 1.33.0-gke.1712000 or later, got 1.32.9-gke.1726000" in message


@of(rules.service_account_missing)
def test_a_pool_of_an_account_that_is_not_there_is_refused(tmp_path: Path) -> None:
    email = "tpu-nodes@tpu-ray-test.iam.gserviceaccount.com"
    made = with_cluster(cloud(tmp_path))
    assert refusal(made, NODE_POOL, pool(node__serviceAccount=email)) == (
        f'error creating NodePool: googleapi: Error 400: Service account "{email}" does not exist., badRequest'
    )
    made.create(ACCOUNT, {"accountId": "tpu-nodes"})
    assert made.create(NODE_POOL, pool(node__serviceAccount=email))


@of(rules.second_interface_elsewhere)
def test_a_second_interface_in_a_subnetwork_that_is_not_there_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path), enableMultiNetworking=True)
    second = [{"network": "second", "subnetwork": "second"}]
    wanted = pool(networkConfig={"enablePrivateNodes": True, "additionalNodeNetworkConfigs": second})
    assert "projects/tpu-ray-test/regions/us-east5/subnetworks/second' was not found" in refusal(
        made, NODE_POOL, wanted
    )


@of(rules.resize_of_slice)
def test_a_slice_is_not_resized_by_hand(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    made.create(NODE_POOL, pool())
    for nodes in (8, 0):
        assert refused_change(made, NODE_POOL, ID, {"nodeCount": nodes}) == (
            "googleapi: Error 501: Unimplemented: Multi-host TPU pool (slice) manual resize is not supported."
        )


@of(rules.machines_of_slice)
def test_the_machines_of_a_slice_are_not_exchanged(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    _, outputs = made.create(NODE_POOL, pool())
    node = outputs["nodeConfig"]
    assert isinstance(node, dict)
    changed = {**node, "machineType": "ct6e-standard-4t"}
    assert made.update(NODE_POOL, ID, {"nodeConfig": changed})
    moved = pool(nodeLocations=["us-east5-a"], node__machineType="ct5p-hightpu-4t")["nodeConfig"]
    message = refused_change(made, NODE_POOL, ID, {"nodeConfig": moved, "placementPolicy": {"tpuTopology": "2x2x4"}})
    assert "Machine type of multi-host TPU pool (slice) cannot be changed" in message


@of(rules.zone_of_slice)
def test_a_slice_does_not_move_to_another_zone(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    made.create(NODE_POOL, pool())
    message = refused_change(made, NODE_POOL, ID, {"nodeLocations": ["us-east5-a"]})
    assert "Locations of multi-host TPU pool (slice) cannot be changed" in message


def test_slices_of_one_host_are_resized_and_change_machines(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    _, outputs = made.create(NODE_POOL, pool(nodeCount=1, placementPolicy=None))
    assert outputs["nodeCount"] == 1
    assert made.update(NODE_POOL, ID, {"nodeCount": 3})["nodeCount"] == 3
    after = made.update(NODE_POOL, ID, {"nodeConfig": pool(node__machineType="ct6e-standard-8t")["nodeConfig"]})
    assert isinstance(after["nodeConfig"], dict)
    assert after["nodeConfig"]["machineType"] == "ct6e-standard-8t"
    assert after["nodeCount"] == 3
