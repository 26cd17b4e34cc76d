"""Name, machines, topology, placement and size of node pools: what Google's double refuses, one test for each rule."""

from pathlib import Path

from tests.cloud.asked import cloud, cluster, pool, scaled, subnetwork, with_cluster
from tests.cloud.rules import half_done, of, refusal
from tests.rig.cloud import refusals_pool_shape as rules
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, RESOURCE_POLICY, SUBNETWORK
from tests.rig.gcp.values import Object

BAD = "error creating NodePool: googleapi: Error 400: "
CENTRAL = "projects/tpu-ray-test/locations/us-central1-c/clusters/main"


def v7x(placement: Object) -> Object:
    """Two hosts of tpu7x, 2x2x2."""
    return pool(
        cluster=CENTRAL,
        nodeLocations=["us-central1-c"],
        nodeCount=2,
        placementPolicy=placement,
        node__machineType="tpu7x-standard-4t",
    )


def central(folder: Path) -> Cloud:
    """A cloud with a cluster where tpu7x is."""
    made = cloud(folder, region="us-central1", zone="us-central1-c")
    made.create(NETWORK, {"name": "main", "autoCreateSubnetworks": False})
    made.create(SUBNETWORK, subnetwork(region="us-central1"))
    made.create(CLUSTER, cluster(location="us-central1-c"))
    return made


def policy(**workload: object) -> Object:
    return {"name": "slice", "region": "us-central1", "workloadPolicy": {"type": "HIGH_THROUGHPUT", **workload}}  # type: ignore[dict-item]


@of(rules.name_form)
def test_a_pool_name_of_41_characters_is_refused(tmp_path: Path) -> None:
    name = "a" * 41
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, pool(name=name)) == (
        f'{BAD}Invalid value for field "node_pool.name": "{name}". Must be a match of regex '
        "'(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)' (only lowercase alphanumerics and '-' allowed, must start with a "
        "letter and end with an alphanumeric, and must be no longer than 40 characters)., badRequest"
    )


@of(rules.machine_in_zone)
def test_a_machine_type_that_the_zone_does_not_have_is_refused(tmp_path: Path) -> None:
    wanted = pool(node__machineType="ct4p-hightpu-4t", placementPolicy={"type": "COMPACT", "tpuTopology": "2x2x4"})
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted) == (
        f'{BAD}Invalid machine type "ct4p-hightpu-4t" in zone "us-east5-b": GCE_NOT_FOUND, badRequest'
    )


@of(rules.topology_of_single_host)
def test_a_topology_on_a_pool_of_single_hosts_is_refused(tmp_path: Path) -> None:
    wanted = pool(nodeCount=1, placementPolicy={"type": "COMPACT", "tpuTopology": "2x2"})
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted) == (
        f"{BAD}TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from "
        "the node pool creation request if the node pool is intented to run with single-host TPU slice nodes., "
        "badRequest"
    )


@of(rules.unknown_topology)
def test_a_topology_that_the_machines_do_not_make_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    wanted = pool(placementPolicy={"type": "COMPACT", "tpuTopology": "2x8"})
    assert '"2x8" is not valid for machine type "ct6e-standard-4t"' in refusal(made, NODE_POOL, wanted)
    wanted = pool(placementPolicy={"type": "COMPACT", "tpuTopology": "4x4"}, node__machineType="ct6e-standard-8t")
    assert '"4x4" is not valid for machine type "ct6e-standard-8t"' in refusal(made, NODE_POOL, wanted)


@of(rules.compact_in_one_zone)
def test_compact_placement_in_two_zones_is_refused(tmp_path: Path) -> None:
    wanted = pool(nodeLocations=["us-east5-a", "us-east5-b"])
    assert "only supported in a single zone" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted)


@of(rules.compact_with_blue_green)
def test_blue_green_upgrades_of_compact_pools_are_refused(tmp_path: Path) -> None:
    wanted = pool(upgradeSettings={"strategy": "BLUE_GREEN"})
    assert "Blue-green upgrades are not supported" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted)


@of(rules.maximum_is_the_slice)
def test_total_limits_count_as_a_maximum_of_0_nodes(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    total = pool(nodeCount=None, autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4})
    assert refusal(made, NODE_POOL, total) == (
        f"{BAD}Maximum node count 0 is not a valid size of TPU pod slice with topology 4x4, badRequest"
    )
    assert "Maximum node count 8 is not" in refusal(made, NODE_POOL, pool(**scaled(0, 8)))


@of(rules.placement_of_tpu7x)
def test_tpu7x_with_compact_placement_is_made_and_goes_to_error(tmp_path: Path) -> None:
    assert half_done(central(tmp_path), NODE_POOL, v7x({"type": "COMPACT", "tpuTopology": "2x2x2"})) == (
        "Error waiting for creating GKE NodePool: Creation of a managed instance group with tpu7x-standard-4t machine "
        "type with placement policy is not supported. Use workload policy instead."
    )


@of(rules.gang_size)
def test_a_slice_with_too_many_hosts_goes_to_error(tmp_path: Path) -> None:
    assert half_done(with_cluster(cloud(tmp_path)), NODE_POOL, pool(nodeCount=8)) == (
        "Error waiting for creating GKE NodePool: Google Compute Engine: Invalid value for field 'resource.resizeBy': "
        "'8'. Requested invalid target size '8' for a Managed Instance Group in the gang mode of size '4'. Should be "
        "equal to the gang size."
    )


@of(rules.policy_missing)
def test_a_workload_policy_that_is_not_there_is_refused(tmp_path: Path) -> None:
    wanted = v7x({"type": "", "policyName": "slice", "tpuTopology": "2x2x2"})
    assert refusal(central(tmp_path), NODE_POOL, wanted) == (
        "error creating NodePool: googleapi: Error 404: The resource "
        "'projects/tpu-ray-test/regions/us-central1/resourcePolicies/slice' was not found, notFound"
    )


@of(rules.policy_without_topology)
def test_a_workload_policy_that_names_no_topology_is_refused(tmp_path: Path) -> None:
    made = central(tmp_path)
    made.create(RESOURCE_POLICY, policy())
    wanted = v7x({"type": "", "policyName": "slice", "tpuTopology": "2x2x2"})
    assert "does not support TPU topology with group placement policy and workload policy at the same time" in refusal(
        made, NODE_POOL, wanted
    )


@of(rules.policy_of_another_topology)
def test_a_workload_policy_of_another_topology_is_refused(tmp_path: Path) -> None:
    made = central(tmp_path)
    made.create(RESOURCE_POLICY, policy(acceleratorTopology="2x2x4"))
    wanted = v7x({"type": "", "policyName": "slice", "tpuTopology": "2x2x2"})
    assert "TPU topology 2x2x2 does not match accelerator topology 2x2x4" in refusal(made, NODE_POOL, wanted)


@of(rules.boot_disk)
def test_a_boot_disk_that_the_machine_does_not_take_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    assert refusal(made, NODE_POOL, pool(node__diskType="pd-balanced")) == (
        f"{BAD}pd-balanced disk type cannot be used by ct6e-standard-4t machine type., badRequest"
    )
    wanted = pool(node__bootDisk={"diskType": "pd-ssd"})
    assert "pd-ssd disk type cannot be used by ct6e-standard-4t" in refusal(made, NODE_POOL, wanted)


@of(rules.duplicate_taint)
def test_a_declared_taint_that_gke_sets_itself_is_refused(tmp_path: Path) -> None:
    taint = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, pool(node__taints=[taint])) == (
        f"{BAD}Found more than one taint with key google.com/tpu and effect NO_SCHEDULE., badRequest"
    )


@of(rules.unstated_private_nodes)
def test_a_pod_range_in_a_private_cluster_asks_for_private_nodes(tmp_path: Path) -> None:
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, pool(networkConfig={"podRange": "pods"})) == (
        f"{BAD}EnablePrivateNodes must be enabled for private clusters with valid masterIpv4Cidr., badRequest"
    )


@of(rules.second_interface_without_multi_networking)
def test_a_second_interface_without_multi_networking_is_refused(tmp_path: Path) -> None:
    second = [{"network": "second", "subnetwork": "second"}]
    wanted = pool(networkConfig={"enablePrivateNodes": True, "additionalNodeNetworkConfigs": second})
    assert "multi-networking enabled" in refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted)


@of(rules.upgrades_off_in_channel)
def test_upgrades_cannot_be_off_in_a_release_channel(tmp_path: Path) -> None:
    wanted = pool(management={"autoRepair": False, "autoUpgrade": False})
    assert refusal(with_cluster(cloud(tmp_path)), NODE_POOL, wanted) == (
        f"{BAD}Auto_upgrade cannot be false when release_channel RAPID is set., badRequest"
    )
