"""Clusters: what Google's double refuses, one test for each rule."""

from pathlib import Path

from tests.cloud.asked import CLUSTER_ID, cloud, cluster, subnetwork, with_cluster, with_network
from tests.cloud.rules import of, refusal, refused_change
from tests.rig.cloud import refusals_cluster as rules
from tests.rig.cloud.world import CLUSTER, NETWORK, SUBNETWORK

BAD = "googleapi: Error 400: "


@of(rules.name_form)
def test_a_cluster_name_of_41_characters_is_refused(tmp_path: Path) -> None:
    message = refusal(with_network(cloud(tmp_path)), CLUSTER, cluster(name="a" * 41))
    assert message.startswith(f'{BAD}Invalid value for field "cluster.name": "{"a" * 41}". Must be a match of regex')


@of(rules.name_taken)
def test_a_second_cluster_of_the_same_name_is_refused(tmp_path: Path) -> None:
    assert refusal(with_cluster(cloud(tmp_path)), CLUSTER, cluster()) == (
        f"googleapi: Error 409: Already exists: {CLUSTER_ID}., alreadyExists"
    )


@of(rules.network_there)
def test_a_cluster_in_no_network_is_refused(tmp_path: Path) -> None:
    message = refusal(cloud(tmp_path), CLUSTER, cluster(subnetwork=None, ipAllocationPolicy=None))
    assert message == (
        "googleapi: Error 404: The resource 'projects/tpu-ray-test/global/networks/main' was not found, notFound"
    )


@of(rules.subnetwork_missing)
def test_a_cluster_in_no_subnetwork_is_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(NETWORK, {"name": "main"})
    assert refusal(made, CLUSTER, cluster(ipAllocationPolicy=None)) == (
        "googleapi: Error 404: The resource 'projects/tpu-ray-test/regions/us-east5/subnetworks/main' was not found, "
        "notFound"
    )


@of(rules.same_secondary_range)
def test_pods_and_services_in_one_range_are_refused(tmp_path: Path) -> None:
    both = {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "pods"}
    assert refusal(with_network(cloud(tmp_path)), CLUSTER, cluster(ipAllocationPolicy=both)) == (
        f"{BAD}Pod secondary range name (pods) should not be the same as service secondary range name., badRequest"
    )


@of(rules.secondary_range_missing)
def test_a_secondary_range_that_the_subnetwork_lacks_is_refused(tmp_path: Path) -> None:
    ranges = {"clusterSecondaryRangeName": "pod", "servicesSecondaryRangeName": "services"}
    assert refusal(with_network(cloud(tmp_path)), CLUSTER, cluster(ipAllocationPolicy=ranges)) == (
        f'{BAD}Pod secondary range "pod" not found in network '
        '"https://www.googleapis.com/compute/v1/projects/tpu-ray-test/global/networks/main", subnetwork "main"., '
        "badRequest"
    )


@of(rules.control_plane_range_taken)
def test_a_control_plane_range_that_overlaps_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    nodes = {"enablePrivateNodes": True, "masterIpv4CidrBlock": "10.0.1.0/28"}
    assert refusal(made, CLUSTER, cluster(name="second", privateClusterConfig=nodes)) == (
        f"{BAD}Invalid value for field PrivateClusterConfig.MasterIpv4CidrBlock: 10.0.1.0/28 conflicts with an "
        "existing subnet in one of the peered VPCs., badRequest"
    )
    assert "172.16.0.0/28 conflicts" in refusal(made, CLUSTER, cluster(name="second"))
    made.create(NETWORK, {"name": "other"})
    made.create(SUBNETWORK, subnetwork(name="other", network="other"))
    # Another network is another matter.
    assert made.create(CLUSTER, cluster(name="second", network="other", subnetwork="other"))


@of(rules.control_plane_range_size)
def test_a_control_plane_range_is_a_28(tmp_path: Path) -> None:
    block = {"enablePrivateNodes": True, "masterIpv4CidrBlock": "172.16.0.0/24"}
    message = refusal(with_network(cloud(tmp_path)), CLUSTER, cluster(privateClusterConfig=block))
    assert "172.16.0.0/24 is not a /28" in message


@of(rules.unsupported_version)
def test_a_version_that_is_not_to_be_had_is_refused(tmp_path: Path) -> None:
    made = with_cluster(cloud(tmp_path))
    old = cluster(name="old", minMasterVersion="1.28", privateClusterConfig=None)
    assert refusal(made, CLUSTER, old) == (f'{BAD}Master version "1.28" is unsupported., badRequest')
    message = refused_change(made, CLUSTER, CLUSTER_ID, {"minMasterVersion": "1.99.0-gke.1"})
    assert 'Master version "1.99.0-gke.1" is unsupported.' in message


@of(rules.version_of_ray)
def test_the_ray_add_on_is_refused_below_its_version(tmp_path: Path) -> None:
    message = refusal(with_network(cloud(tmp_path)), CLUSTER, cluster(minMasterVersion="1.29"))
    assert "requires GKE version 1.30.0-gke.1747000 or later, got 1.29.15-gke.1523000" in message


@of(rules.first_pool)
def test_the_first_pool_has_to_be_possible_though_it_is_deleted(tmp_path: Path) -> None:
    made = cloud(tmp_path, region="us-central2", zone="us-central2-b")
    made.create(NETWORK, {"name": "main"})
    made.create(SUBNETWORK, subnetwork(region="us-central2"))
    e2 = cluster(location="us-central2-b", nodeConfig={"machineType": "e2-standard-4"})
    assert refusal(made, CLUSTER, e2) == (
        f'{BAD}Invalid machine type "e2-standard-4" in zone "us-central2-b": GCE_NOT_FOUND, badRequest'
    )
    assert 'Invalid machine type "e2-medium"' in refusal(made, CLUSTER, cluster(location="us-central2-b"))
    n2 = cluster(location="us-central2-b", nodeConfig={"machineType": "n2-standard-4"})
    assert made.create(CLUSTER, n2)


def test_without_computes_own_account_the_first_pool_needs_another(tmp_path: Path) -> None:
    made = with_network(cloud(tmp_path, default_service_account=False))
    assert '"415104041262-compute@developer.gserviceaccount.com" does not exist' in refusal(made, CLUSTER, cluster())
