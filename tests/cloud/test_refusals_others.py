"""APIs, accounts, members, buckets, repositories, keys: what Google's double refuses, one test for each rule."""

from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, cloud, cluster, with_cluster, with_network
from tests.cloud.rules import of, refusal, refused_delete
from tests.rig.cloud import drift, invokes
from tests.rig.cloud import refusals_others as rules
from tests.rig.cloud.refused import Refused
from tests.rig.cloud.world import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    BUCKET,
    BUCKET_MEMBER,
    BUCKET_OBJECT,
    CLUSTER,
    CRYPTO_KEY,
    CRYPTO_KEY_MEMBER,
    KEY_RING,
    NETWORK,
    PROJECT_MEMBER,
    REPOSITORY,
    REPOSITORY_MEMBER,
    SERVICE,
)
from tests.rig.gcp.values import Object

CHECKPOINTS: Object = {"name": "checkpoints", "location": "us-east5"}
RING: Object = {"name": "ring", "location": "us-east5"}
RING_ID = "projects/tpu-ray-test/locations/us-east5/keyRings/ring"


@of(rules.api_disabled)
def test_an_api_that_is_not_enabled_is_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path, enabled_apis=["serviceusage.googleapis.com"])
    assert refusal(made, NETWORK, {"name": "main"}) == (
        "Error creating Network: googleapi: Error 403: Compute Engine API has not been used in project 415104041262 "
        "before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=415104041262 then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
        "retry., accessNotConfigured"
    )
    made.create(SERVICE, {"service": "compute.googleapis.com"})
    made.create(NETWORK, {"name": "main"})
    member: Object = {"project": "tpu-ray-test", "role": "roles/viewer", "member": "user:a@example.com"}
    assert "Cloud Resource Manager API has not been used" in refusal(made, PROJECT_MEMBER, member)


@of(rules.account_missing)
def test_an_account_of_the_project_that_is_not_there_is_refused(tmp_path: Path) -> None:
    email = "tpu-nodes@tpu-ray-test.iam.gserviceaccount.com"
    wanted = cluster(nodeConfig={"serviceAccount": email})
    assert refusal(with_network(cloud(tmp_path)), CLUSTER, wanted) == (
        f'googleapi: Error 400: Service account "{email}" does not exist., badRequest'
    )


@of(rules.account_taken)
def test_a_second_account_of_the_same_name_is_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(ACCOUNT, {"accountId": "tpu-nodes"})
    assert refusal(made, ACCOUNT, {"accountId": "tpu-nodes"}) == (
        "Error creating service account: googleapi: Error 409: Service account tpu-nodes already exists within project "
        "projects/tpu-ray-test., alreadyExists"
    )
    assert made.create(ACCOUNT, {"accountId": "tpu-nodes", "createIgnoreAlreadyExists": True})


@of(rules.object_of_no_bucket)
def test_an_object_needs_its_bucket(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    thing: Object = {"name": "code/a.zip", "bucket": "checkpoints"}
    assert refusal(made, BUCKET_OBJECT, thing) == (
        "Error creating object: googleapi: Error 404: The specified bucket does not exist., notFound"
    )
    made.create(BUCKET, CHECKPOINTS)
    for _ in range(2):
        made.create(BUCKET_OBJECT, thing)


@of(rules.bucket_taken)
def test_a_bucket_that_somebody_has_is_refused(tmp_path: Path) -> None:
    made = cloud(
        tmp_path, existing=[{"token": BUCKET, "inputs": {**CHECKPOINTS, "name": "theirs", "project": "other"}}]
    )
    made.create(BUCKET, CHECKPOINTS)
    assert refusal(made, BUCKET, CHECKPOINTS) == (
        "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own it., "
        "conflict"
    )
    assert refusal(made, BUCKET, {**CHECKPOINTS, "name": "theirs"}) == (
        "googleapi: Error 409: The requested bucket name is not available. The bucket namespace is shared by all users "
        "of the system. Please select a different name and try again., conflict"
    )


@of(rules.bucket_full)
def test_a_bucket_with_objects_stays_unless_told(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(BUCKET, CHECKPOINTS)
    drift.objects_written(made, "checkpoints", ["run/10/commit_success.txt"])
    assert refused_delete(made, BUCKET, "checkpoints") == (
        "Error trying to delete bucket checkpoints without `force_destroy` set to true"
    )
    made.delete(BUCKET, "checkpoints", {"forceDestroy": True})
    assert made.read(BUCKET, "checkpoints") is None


@of(rules.key_ring_taken)
def test_a_key_ring_is_for_ever(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    id, outputs = made.create(KEY_RING, RING)
    made.delete(KEY_RING, id, outputs)
    assert refusal(made, KEY_RING, RING) == (
        f"Error creating KeyRing: googleapi: Error 409: KeyRing {RING_ID} already exists., alreadyExists"
    )


@of(rules.crypto_key_taken)
def test_a_key_is_for_ever(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(KEY_RING, RING)
    key: Object = {"name": "state", "keyRing": RING_ID}
    id, outputs = made.create(CRYPTO_KEY, key)
    made.delete(CRYPTO_KEY, id, outputs)
    assert f"CryptoKey {RING_ID}/cryptoKeys/state already exists" in refusal(made, CRYPTO_KEY, key)


@of(rules.repository_taken)
def test_a_second_repository_of_the_same_name_is_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    images: Object = {"repositoryId": "images", "location": "us-east5", "format": "DOCKER"}
    made.create(REPOSITORY, images)
    assert "Error 409: the repository already exists" in refusal(made, REPOSITORY, images)


@of(rules.key_ring_missing)
def test_a_key_of_no_ring_is_refused(tmp_path: Path) -> None:
    message = refusal(cloud(tmp_path), CRYPTO_KEY, {"name": "state", "keyRing": RING_ID})
    assert f"Error 404: KeyRing {RING_ID} not found" in message


@of(rules.member_of_nothing)
def test_members_of_what_is_not_there_are_refused(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    member: Object = {"role": "roles/viewer", "member": "user:a@example.com"}
    nodes = "projects/tpu-ray-test/serviceAccounts/tpu-nodes@tpu-ray-test.iam.gserviceaccount.com"
    images: Object = {"repository": "images", "location": "us-east5"}
    assert "The specified bucket does not exist" in refusal(made, BUCKET_MEMBER, {**member, "bucket": "none"})
    assert "Unknown service account tpu-nodes@" in refusal(made, ACCOUNT_MEMBER, {**member, "serviceAccountId": nodes})
    assert "entity was not found" in refusal(made, REPOSITORY_MEMBER, {**member, **images})
    assert "CryptoKey none not found" in refusal(made, CRYPTO_KEY_MEMBER, {**member, "cryptoKeyId": "none"})


PRINCIPAL = (
    "principal://iam.googleapis.com/projects/415104041262/locations/global/workloadIdentityPools/"
    "tpu-ray-test.svc.id.goog/subject/ns/tpu-ray/sa/tpu-ray"
)


@of(rules.identity_pool_missing)
def test_pods_are_no_members_before_the_first_cluster_with_workload_identity(tmp_path: Path) -> None:
    made = cloud(tmp_path)
    made.create(BUCKET, CHECKPOINTS)
    member: Object = {"bucket": "checkpoints", "role": "roles/storage.objectUser", "member": PRINCIPAL}
    assert refusal(made, BUCKET_MEMBER, member) == (
        'Error applying IAM policy for storage bucket "b/checkpoints": Error setting IAM policy for storage bucket '
        '"b/checkpoints": googleapi: Error 400: Identity Pool does not exist '
        "(projects/415104041262/locations/global/workloadIdentityPools/tpu-ray-test.svc.id.goog). Please check that "
        "you specified a valid resource name as returned in the `name` attribute in the configuration API., badRequest"
    )
    old: Object = {**member, "member": "serviceAccount:tpu-ray-test.svc.id.goog[tpu-ray/tpu-ray]"}
    assert "Identity Pool does not exist (tpu-ray-test.svc.id.goog)" in refusal(made, BUCKET_MEMBER, old)
    with_cluster(made)
    made.delete(CLUSTER, CLUSTER_ID, {})
    # The pool outlives the cluster.
    assert made.create(BUCKET_MEMBER, member)


@of(rules.member_account_missing)
def test_an_account_that_is_not_there_is_no_member(tmp_path: Path) -> None:
    made, email = cloud(tmp_path), "tpu-nodes@tpu-ray-test.iam.gserviceaccount.com"
    member: Object = {"project": "tpu-ray-test", "role": "roles/viewer", "member": f"serviceAccount:{email}"}
    assert refusal(made, PROJECT_MEMBER, member) == (
        'Error applying IAM policy for project "tpu-ray-test": Error setting IAM policy for project "tpu-ray-test": '
        f"googleapi: Error 400: Service account {email} does not exist., badRequest"
    )
    made.create(ACCOUNT, {"accountId": "tpu-nodes"})
    assert made.create(PROJECT_MEMBER, member)


@of(invokes.cluster_not_found)
def test_a_cluster_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        cloud(tmp_path).invoke(invokes.GET_CLUSTER, {"name": "none", "location": "us-east5-b"})
    assert str(caught.value) == "projects/tpu-ray-test/locations/us-east5-b/clusters/none not found"
