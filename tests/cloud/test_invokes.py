"""The provider's functions."""

from pathlib import Path

from tests.cloud.asked import CLUSTER_ID, cloud, pool, with_cluster
from tests.rig.cloud import invokes
from tests.rig.cloud.world import NODE_POOL
from tests.rig.gcp.values import plain_list, plain_object


def test_versions_are_those_of_the_prefix_newest_first(tmp_path: Path) -> None:
    found = cloud(tmp_path).invoke(invokes.VERSIONS, {"location": "us-east5", "versionPrefix": "1.34."})
    assert found["latestMasterVersion"] == "1.34.4-gke.1193000"
    assert found["validNodeVersions"] == ["1.34.4-gke.1193000", "1.34.0-gke.2201000"]
    assert plain_object(found["releaseChannelDefaultVersion"])["RAPID"] == "1.35.3-gke.1737000"


def test_a_cluster_comes_with_its_blocks_as_lists(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    one.create(NODE_POOL, pool())
    found = one.invoke(invokes.GET_CLUSTER, {"name": "main", "location": "us-east5-b"})
    assert found["id"] == CLUSTER_ID
    (auth,) = plain_list(found["masterAuths"])
    assert plain_object(auth)["clusterCaCertificate"]
    (private,) = plain_list(found["privateClusterConfigs"])
    assert plain_object(private)["masterIpv4CidrBlock"] == "172.16.0.0/28"
    (addons,) = plain_list(found["addonsConfigs"])
    (ray,) = plain_list(plain_object(addons)["rayOperatorConfigs"])
    assert plain_object(ray)["enabled"] is True
    (made,) = plain_list(found["nodePools"])
    (machines,) = plain_list(plain_object(made)["nodeConfigs"])
    assert plain_object(machines)["machineType"] == "ct6e-standard-4t"
    assert found["deletionProtection"] is False
    assert found["nodeConfigs"] == []


def test_the_project_has_a_number(tmp_path: Path) -> None:
    found = cloud(tmp_path, number="42").invoke(invokes.PROJECT, {"projectId": "tpu-ray-test"})
    assert (found["id"], found["number"]) == ("projects/tpu-ray-test", "42")


def test_the_client_has_a_token(tmp_path: Path) -> None:
    found = cloud(tmp_path).invoke(invokes.CLIENT_CONFIG, {})
    assert found["id"] == "projects/tpu-ray-test/regions/us-east5/zones/us-east5-b"
    assert str(found["accessToken"]).startswith("ya29.")
