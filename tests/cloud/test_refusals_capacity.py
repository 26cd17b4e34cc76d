"""Spot, reservations, flex-start, queued provisioning, quota, stock: what Google's double refuses, one test a rule."""

from pathlib import Path

from tests.cloud.asked import cloud, cluster, flex_start, pool, queued, scaled, subnetwork, with_cluster
from tests.cloud.rules import half_done, of, refusal
from tests.rig.cloud import refusals_capacity as rules
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK

BAD = "error creating NodePool: googleapi: Error 400: "
HELD = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["held"],
}
RESERVED = {"name": "held", "zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": 4}


@of(rules.flex_start_without_autoscaling)
def test_flex_start_without_autoscaling_is_refused(tmp_path: Path) -> None:
    wanted = flex_start(autoscaling=None, initialNodeCount=0)
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted) == (
        f"{BAD}Flex start node pools require autoscaling enabled., badRequest"
    )


@of(rules.flex_start_with_nodes)
def test_flex_start_with_nodes_at_once_is_refused(tmp_path: Path) -> None:
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, flex_start(initialNodeCount=4)) == (
        f"{BAD}Flex start node pools require initial node count to be set to 0., badRequest"
    )


@of(rules.flex_start_with_repair)
def test_flex_start_with_repair_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    assert "auto repair to be disabled" in refusal(made, NODE_POOL, flex_start(management={"autoRepair": True}))
    assert "auto repair to be disabled" in refusal(made, NODE_POOL, flex_start(management=None))


@of(rules.flex_start_with_spot)
def test_flex_start_with_spot_is_refused(tmp_path: Path) -> None:
    wanted = flex_start(node__spot=True)
    assert "Flex start node pools don't support Spot" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted)


@of(rules.flex_start_with_reservation)
def test_flex_start_asks_for_no_reservation_in_so_many_words(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path, reservations=[RESERVED]))
    expected = f"{BAD}Flex start node pools don't support reservations., badRequest"
    assert refusal(made, NODE_POOL, flex_start(node__reservationAffinity=HELD)) == expected
    assert refusal(made, NODE_POOL, flex_start(node__reservationAffinity=None)) == expected


@of(rules.flex_start_and_queued)
def test_flex_start_together_with_queued_is_refused_for_tpus(tmp_path: Path) -> None:
    wanted = flex_start(queuedProvisioning={"enabled": True})
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted) == (
        f"{BAD}Flex start node pools don't support TPUs with queued provisioning., badRequest"
    )


@of(rules.lent_generation)
def test_v4_is_not_lent(tmp_path: Path) -> None:
    made = cloud(tmp_path, region="us-central2", zone="us-central2-b")
    made.create(NETWORK, {"name": "main"})
    made.create(SUBNETWORK, subnetwork(region="us-central2"))
    made.create(CLUSTER, cluster(location="us-central2-b", nodeConfig={"machineType": "n2-standard-4"}))
    v4 = {
        "cluster": "projects/tpu-ray-test/locations/us-central2-b/clusters/main",
        "nodeLocations": ["us-central2-b"],
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "2x2x4"},
        "node__machineType": "ct4p-hightpu-4t",
    }
    message = "ct4p-hightpu-4t does not support flex-start provisioning"
    assert message in refusal(made, NODE_POOL, flex_start(**v4))
    assert message in refusal(made, NODE_POOL, queued(**v4))


@of(rules.longest_run)
def test_machines_are_lent_for_seven_days_at_most(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    assert "must not be longer than 604800s" in refusal(made, NODE_POOL, flex_start(node__maxRunDuration="604801s"))
    assert made.create(NODE_POOL, flex_start(node__maxRunDuration="604800s"))


@of(rules.queued_with_nodes)
def test_queued_with_a_minimum_is_refused(tmp_path: Path) -> None:
    wanted = queued(**scaled(4, 4))
    assert "minimum node count of 0, got 4" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted)


@of(rules.queued_with_spot)
def test_queued_with_spot_is_refused(tmp_path: Path) -> None:
    assert "Spot" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, queued(node__spot=True))


@of(rules.queued_with_reservation)
def test_queued_asks_for_no_reservation_in_so_many_words(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path, reservations=[RESERVED]))
    expected = f"{BAD}Queued_provisioning requires reservation affinity to be set to none, badRequest"
    assert refusal(made, NODE_POOL, queued(node__reservationAffinity=HELD)) == expected
    assert refusal(made, NODE_POOL, queued(node__reservationAffinity=None)) == expected


@of(rules.spot_with_reservation)
def test_spot_with_a_reservation_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path, reservations=[RESERVED]))
    wanted = pool(node__spot=True, node__reservationAffinity=HELD)
    assert "Spot VMs cannot consume reservations" in refusal(made, NODE_POOL, wanted)


@of(rules.reservation_missing)
def test_a_reservation_of_another_zone_is_not_found(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path, reservations=[{**RESERVED, "zone": "us-east5-a"}]))
    assert refusal(made, NODE_POOL, pool(node__reservationAffinity=HELD)) == (
        'error creating NodePool: googleapi: Error 404: Google Compute Engine: reservation "held" not found for node '
        'pool "slice" at zone "us-east5-b"., notFound'
    )


@of(rules.reservation_too_small)
def test_a_reservation_of_other_machines_or_too_few_is_insufficient(tmp_path: Path) -> None:
    wanted = pool(node__reservationAffinity=HELD)
    other = with_cluster(cloud(tmp_path / "other", reservations=[{**RESERVED, "machine_type": "ct6e-standard-8t"}]))
    assert refusal(other, NODE_POOL, wanted) == (
        "error creating NodePool: googleapi: Error 429: Reservation does not have enough resources for the request: "
        'specific reservation "held" is insufficient for node pool "slice" at zone "us-east5-b": required 4 and short '
        "of 4 VM count of machine type ct6e-standard-4t., rateLimitExceeded"
    )
    made = with_cluster(cloud(tmp_path / "few", reservations=[{**RESERVED, "hosts": 6}]))
    made.create(NODE_POOL, wanted)
    second = pool(name="second", node__reservationAffinity=HELD)
    assert "required 4 and short of 2 VM count" in refusal(made, NODE_POOL, second)


@of(rules.quota)
def test_more_chips_than_the_quota_are_refused(tmp_path: Path) -> None:
    quota = {"generation": "v6e", "region": "us-east5", "chips": 24, "preemptible": 0}
    made = with_cluster(cloud(tmp_path, quotas=[quota], reservations=[RESERVED]))
    made.create(NODE_POOL, pool())
    assert refusal(made, NODE_POOL, pool(name="second")) == (
        "error creating NodePool: googleapi: Error 403: Insufficient regional quota to satisfy request: resource "
        "\"TPUS_PER_TPU_FAMILY\" (CT6E): request requires '16.0' and is short '8.0'. project has a quota of '24.0' "
        "with '8.0' available. View and manage quotas at "
        "https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=tpu-ray-test., forbidden"
    )
    assert "PREEMPTIBLE" in refusal(made, NODE_POOL, pool(name="spot", node__spot=True))
    # Reserved machines ask for no quota.
    made.create(NODE_POOL, pool(name="reserved", node__reservationAffinity=HELD))


@of(rules.stockout)
def test_a_stockout_leaves_the_pool_in_error_without_nodes(tmp_path: Path) -> None:
    stock = {"zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": 6}
    made = with_cluster(cloud(tmp_path, stock=[stock]))
    made.create(NODE_POOL, pool())
    said = half_done(made, NODE_POOL, pool(name="second"))
    assert said.startswith(
        "Error waiting for creating GKE NodePool: Google Compute Engine: Not all instances running in IGM after 35m. "
        "Expected 4, running 2, transitioning 2. Current errors: [GCE_STOCKOUT]: Instance 'gke-tpu-"
    )
    assert said.endswith(
        "creation failed: The zone 'projects/tpu-ray-test/zones/us-east5-b' does not have enough resources available "
        "to fulfill the request."
    )
    left = made.read(NODE_POOL, "projects/tpu-ray-test/locations/us-east5-b/clusters/main/nodePools/second")
    assert left is not None
    assert left["nodeCount"] == 0
