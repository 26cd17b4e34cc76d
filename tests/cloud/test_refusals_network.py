"""Networks and what belongs to them: what Google's double refuses, one test for each rule."""

from pathlib import Path

from tests.cloud.asked import CLUSTER_ID, cloud, pool, subnetwork, with_cluster, with_network
from tests.cloud.rules import of, refusal, refused_change, refused_delete
from tests.rig.cloud import refusals_network as rules
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, RESOURCE_POLICY, ROUTER, ROUTER_NAT, SUBNETWORK
from tests.rig.gcp.values import Value

NETWORK_ID = "projects/tpu-ray-test/global/networks/main"
SUBNETWORK_ID = "projects/tpu-ray-test/regions/us-east5/subnetworks/main"


def ranges(**blocks: str) -> Value:
    return [{"rangeName": name, "ipCidrRange": block} for name, block in blocks.items()]


@of(rules.taken)
def test_a_second_network_of_the_same_name_is_refused(tmp_path: Path) -> None:
    assert refusal(with_network(cloud(tmp_path)), NETWORK, {"name": "main"}) == (
        f"Error creating Network: googleapi: Error 409: The resource '{NETWORK_ID}' already exists, alreadyExists"
    )


@of(rules.network_missing)
def test_a_subnetwork_of_no_network_is_refused(tmp_path: Path) -> None:
    assert refusal(cloud(tmp_path), SUBNETWORK, subnetwork()) == (
        f"Error creating Subnetwork: googleapi: Error 404: The resource '{NETWORK_ID}' was not found, notFound"
    )


@of(rules.router_missing)
def test_a_nat_of_no_router_is_refused(tmp_path: Path) -> None:
    message = refusal(with_network(cloud(tmp_path)), ROUTER_NAT, {"name": "nat", "region": "us-east5", "router": "r"})
    assert "projects/tpu-ray-test/regions/us-east5/routers/r' was not found" in message


@of(rules.range_taken)
def test_a_range_of_another_subnetwork_is_refused(tmp_path: Path) -> None:
    made = with_network(cloud(tmp_path))
    second = subnetwork(name="second", ipCidrRange="10.0.8.0/21", secondaryIpRanges=None)
    assert refusal(made, SUBNETWORK, second) == (
        "Error creating Subnetwork: googleapi: Error 400: Invalid value for field 'resource.ipCidrRange': "
        "'10.0.8.0/21'. Invalid IPCidrRange: 10.0.8.0/21 conflicts with existing subnetwork 'main' in region "
        "'us-east5'., invalid"
    )
    secondary = subnetwork(name="second", ipCidrRange="10.64.0.0/20", secondaryIpRanges=ranges(pods="10.5.0.0/16"))
    assert "10.5.0.0/16 conflicts with existing subnetwork 'main'" in refusal(made, SUBNETWORK, secondary)


@of(rules.ranges_of_one)
def test_overlapping_ranges_of_one_subnetwork_are_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(NETWORK, {"name": "main"})
    wanted = subnetwork(secondaryIpRanges=ranges(pods="10.0.0.0/16"))
    assert "10.0.0.0/16 conflicts" in refusal(made, SUBNETWORK, wanted)


@of(rules.secondary_range_changed)
def test_a_secondary_range_is_not_changed(tmp_path: Path) -> None:
    made = with_network(cloud(tmp_path))
    changed = {"secondaryIpRanges": ranges(pods="10.12.0.0/14", services="10.8.0.0/20")}
    assert refused_change(made, SUBNETWORK, SUBNETWORK_ID, changed) == (
        f'Error updating Subnetwork "{SUBNETWORK_ID}": googleapi: Error 400: Invalid value for field '
        "'resource.secondaryIpRanges[0].ipCidrRange': '10.12.0.0/14'. Existing secondary range cannot be modified: "
        "10.12.0.0/14., invalid"
    )


@of(rules.secondary_ranges_exchanged)
def test_secondary_ranges_do_not_come_and_go_in_one_request(tmp_path: Path) -> None:
    made = with_network(cloud(tmp_path))
    changed = {"secondaryIpRanges": ranges(other="10.12.0.0/14", services="10.8.0.0/20")}
    message = refused_change(made, SUBNETWORK, SUBNETWORK_ID, changed)
    assert (
        "Cannot add and remove secondary IP ranges in the same request. Added ranges: [10.12.0.0/14]. Removed ranges: "
        "[10.4.0.0/14]., invalid" in message
    )


@of(rules.secondary_range_in_use)
def test_a_secondary_range_of_a_cluster_stays(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    changed = {"secondaryIpRanges": ranges(pods="10.4.0.0/14")}
    message = refused_change(made, SUBNETWORK, SUBNETWORK_ID, changed)
    assert f"is already being used by '{CLUSTER_ID}'" in message


@of(rules.network_in_use)
def test_a_network_with_a_subnetwork_stays(tmp_path: Path) -> None:
    assert refused_delete(with_network(cloud(tmp_path)), NETWORK, NETWORK_ID) == (
        f"Error waiting for Deleting Network: The network resource '{NETWORK_ID}' is already being used by "
        f"'{SUBNETWORK_ID}'"
    )


@of(rules.subnetwork_in_use)
def test_a_subnetwork_with_a_cluster_stays(tmp_path: Path) -> None:
    assert refused_delete(with_cluster(cloud(tmp_path)), SUBNETWORK, SUBNETWORK_ID) == (
        f"Error when reading or editing Subnetwork: googleapi: Error 400: The subnetwork resource '{SUBNETWORK_ID}' is "
        f"already being used by '{CLUSTER_ID}', resourceInUseByAnotherResource"
    )


@of(rules.policy_in_use)
def test_a_workload_policy_with_a_pool_stays(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    made.create(RESOURCE_POLICY, {"name": "near", "region": "us-east5"})
    made.create(NODE_POOL, pool(placementPolicy={"type": "COMPACT", "policyName": "near", "tpuTopology": "4x4"}))
    id = "projects/tpu-ray-test/regions/us-east5/resourcePolicies/near"
    assert f"is already being used by '{CLUSTER_ID}/nodePools/slice'" in refused_delete(made, RESOURCE_POLICY, id)


def test_deleted_in_order_everything_goes(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    router, _ = made.create(ROUTER, {"name": "main", "region": "us-east5", "network": "main"})
    nat, _ = made.create(ROUTER_NAT, {"name": "nat", "region": "us-east5", "router": "main"})
    made.create(NODE_POOL, pool())
    for token, id in ((CLUSTER, CLUSTER_ID), (ROUTER, router), (SUBNETWORK, SUBNETWORK_ID), (NETWORK, NETWORK_ID)):
        made.delete(token, id, {})
        assert made.read(token, id) is None
    # GKE deletes a cluster's pools with it, and a NAT is a part of its router.
    assert made.read(NODE_POOL, f"{CLUSTER_ID}/nodePools/slice") is None
    assert made.read(ROUTER_NAT, nat) is None
