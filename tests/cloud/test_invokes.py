"""The provider's functions."""

from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, cloud, pool, with_cluster
from tests.rig.cloud import invokes
from tests.rig.cloud.held import Thing
from tests.rig.cloud.refused import Refused
from tests.rig.cloud.world import NODE_POOL, OBJECT
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


def test_an_object_of_a_bucket_is_listed_and_read_and_one_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    with one.held.change() as things:
        things.put(OBJECT, "runs/story-r1/export/export.json", Thing({}, {"content": '{"step": 10}'}))
    listed = one.invoke(invokes.OBJECTS, {"bucket": "runs", "prefix": "story-r1/export/export.json"})
    (found,) = plain_list(listed["bucketObjects"])
    name = plain_object(found)["name"]
    assert one.invoke(invokes.CONTENT, {"bucket": "runs", "name": name})["content"] == '{"step": 10}'
    assert one.invoke(invokes.OBJECTS, {"bucket": "runs", "prefix": "story-r2/"})["bucketObjects"] == []
    with pytest.raises(Refused, match="404"):
        one.invoke(invokes.CONTENT, {"bucket": "other", "name": name})
