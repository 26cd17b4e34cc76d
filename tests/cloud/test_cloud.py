"""Holding, changing and forgetting, from many threads and processes."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, PROJECT, cloud, pool, with_cluster
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.refused import Refused
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import ACCOUNT, BUCKET, BUCKET_MEMBER, CLUSTER, NETWORK, NODE_POOL, SERVICE, SUBNETWORK
from tests.rig.gcp.values import Object, plain_object

MEMBER: Object = {"bucket": "checkpoints", "role": "roles/storage.objectUser", "member": "user:a@example.com"}
ROOT = Path(__file__).parents[2]


def test_what_was_made_is_there_in_the_next_process(tmp_path: Path) -> None:
    cloud(tmp_path).create(BUCKET, {"name": "checkpoints", "location": "us-east5"})
    outputs = Cloud(tmp_path).read(BUCKET, "checkpoints")
    assert outputs is not None
    assert (outputs["location"], outputs["url"]) == ("US-EAST5", "gs://checkpoints")
    assert Cloud(tmp_path).read(BUCKET, "others") is None


def test_a_project_has_a_default_network_once(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    network, subnetwork = f"projects/{PROJECT}/global/networks/default", "regions/us-east5/subnetworks/default"
    assert one.read(NETWORK, network) is not None
    one.delete(SUBNETWORK, f"projects/{PROJECT}/{subnetwork}", {})
    one.delete(NETWORK, network, {})
    assert Cloud(tmp_path).read(NETWORK, network) is None


def test_threads_do_not_spend_one_quota_twice(tmp_path: Path) -> None:
    quota = {"generation": "v6e", "region": "us-east5", "chips": 48}
    one = with_cluster(cloud(tmp_path, quotas=[quota]))

    said: list[str] = []

    def made(number: int) -> bool:
        try:
            one.create(NODE_POOL, pool(name=f"slice-{number}"))
        except Refused as refused:
            said.append(str(refused))
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(made, range(16))) == 3
    assert all("Insufficient regional quota" in each for each in said)


def test_processes_share_one_cloud(tmp_path: Path) -> None:
    cloud(tmp_path)
    program = (
        "import sys; from pathlib import Path; from tests.rig.cloud.cloud import Cloud\n"
        "one = Cloud(Path(sys.argv[1]))\n"
        "for number in range(20):\n"
        f"    one.create({ACCOUNT!r}, {{'accountId': f'account-{{sys.argv[2]}}-{{number}}'}})\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name], cwd=ROOT) for name in ("a", "b")]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    with Cloud(tmp_path).held.change() as things:
        assert len(things.every(ACCOUNT)) == 40


def test_operations_take_their_scaled_time(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    write_settings(tmp_path, Settings(seconds_per_minute=0.02))
    began = time.monotonic()
    one.create(NODE_POOL, pool())
    # Five minutes.
    assert time.monotonic() - began >= 0.1


def test_while_an_operation_runs_others_go_on(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    write_settings(tmp_path, Settings(seconds_per_minute=0.1))
    began = time.monotonic()
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(lambda number: one.create(NODE_POOL, pool(name=f"slice-{number}")), range(10)))
    # One after the other they would take five seconds.
    assert time.monotonic() - began < 4


def test_a_change_replaces_whole_properties_and_takes_away(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    versioned: Object = {"name": "checkpoints", "location": "us-east5", "versioning": {"enabled": True}}
    _, outputs = one.create(BUCKET, versioned)
    assert outputs["versioning"] == {"enabled": True}
    after = one.update(BUCKET, "checkpoints", {"versioning": None, "storageClass": "NEARLINE"})
    assert "versioning" not in after
    assert after["storageClass"] == "NEARLINE"


def test_a_changed_pool_keeps_what_is_gkes(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path))
    id, outputs = one.create(NODE_POOL, pool())
    node: Object = {**plain_object(outputs["nodeConfig"]), "labels": {"team": "b"}}
    del node["advancedMachineFeatures"]
    after = plain_object(one.update(NODE_POOL, id, {"nodeConfig": node})["nodeConfig"])
    assert after["labels"] == {"team": "b"}
    assert after["advancedMachineFeatures"] == {"threadsPerCore": 1}
    assert after["effectiveTaints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]


def test_a_change_of_what_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="was not found"):
        cloud(tmp_path).update(BUCKET, "none", {"storageClass": "NEARLINE"})


def test_to_delete_what_is_gone_is_no_error(tmp_path: Path) -> None:
    cloud(tmp_path).delete(BUCKET, "none", {})


def test_an_api_stays_enabled_unless_the_program_says_so(tmp_path: Path) -> None:
    one = cloud(tmp_path, enabled_apis=[])
    id, _ = one.create(SERVICE, {"service": "compute.googleapis.com"})
    one.delete(SERVICE, id, {})
    one.create(NETWORK, {"name": "main"})
    one.delete(SERVICE, id, {"disableOnDestroy": True})
    with pytest.raises(Refused, match="has not been used"):
        one.create(NETWORK, {"name": "second"})


def test_an_api_that_is_enabled_is_taken_over(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    first, _ = one.create(SERVICE, {"service": "compute.googleapis.com"})
    assert one.create(SERVICE, {"service": "compute.googleapis.com"})[0] == first


def test_a_policys_mark_changes_with_every_member(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    one.create(BUCKET, {"name": "checkpoints", "location": "us-east5"})
    id, before = one.create(BUCKET_MEMBER, MEMBER)
    assert before["bucket"] == "b/checkpoints"
    one.create(BUCKET_MEMBER, {**MEMBER, "member": "user:b@example.com"})
    after = one.read(BUCKET_MEMBER, id)
    assert after is not None
    assert after["etag"] != before["etag"]


def test_members_go_with_their_bucket(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    one.create(BUCKET, {"name": "checkpoints", "location": "us-east5"})
    id, _ = one.create(BUCKET_MEMBER, MEMBER)
    one.delete(BUCKET, "checkpoints", {})
    assert one.read(BUCKET_MEMBER, id) is None


def test_principals_keep_their_capitals(tmp_path: Path) -> None:
    one = cloud(tmp_path)
    one.create(BUCKET, {"name": "checkpoints", "location": "us-east5"})
    who = "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/P.svc.id.goog/subject/ns/N/sa/S"
    id, _ = one.create(BUCKET_MEMBER, {**MEMBER, "member": who})
    assert id == f"b/checkpoints/roles/storage.objectUser/{who}"


def test_clusters_that_were_there_are_there(tmp_path: Path) -> None:
    there = {"token": CLUSTER, "inputs": {"name": "main", "location": "us-east5-b", "initialNodeCount": 1}}
    one = cloud(tmp_path, existing=[there])
    outputs = one.read(CLUSTER, CLUSTER_ID)
    assert outputs is not None
    assert outputs["network"] == f"projects/{PROJECT}/global/networks/default"
    assert plain_object(outputs["nodeConfig"])["machineType"] == "e2-medium"
    one.delete(CLUSTER, CLUSTER_ID, {})
    assert Cloud(tmp_path).read(CLUSTER, CLUSTER_ID) is None
