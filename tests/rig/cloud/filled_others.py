"""What Google fills in of buckets, accounts, APIs, repositories, keys and IAM members."""

from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    BUCKET,
    BUCKET_MEMBER,
    CREATED,
    CRYPTO_KEY,
    CRYPTO_KEY_MEMBER,
    PROJECT_MEMBER,
    REPOSITORY,
    REPOSITORY_MEMBER,
    World,
    digits,
    last,
    mark,
    text,
    under,
)
from tests.rig.gcp.values import Object, plain_object

POLICIES = {
    BUCKET_MEMBER: 'storage bucket "b/{}"',
    ACCOUNT_MEMBER: "service account '{}'",
    PROJECT_MEMBER: 'project "{}"',
    REPOSITORY_MEMBER: 'artifactregistry repository "{}"',
    CRYPTO_KEY_MEMBER: 'KMS CryptoKey "{}"',
}
"""How the provider's messages name what a policy belongs to."""
MEMBERS = tuple(POLICIES)
MEMBERS_OF = {
    BUCKET: BUCKET_MEMBER,
    ACCOUNT: ACCOUNT_MEMBER,
    REPOSITORY: REPOSITORY_MEMBER,
    CRYPTO_KEY: CRYPTO_KEY_MEMBER,
}
"""IAM members that go when the thing they belong to goes."""


def bucket_id(world: World, inputs: Object) -> str:
    return text(inputs.get("name"))


def fill_bucket(world: World, id: str, inputs: Object) -> Thing:
    location = text(inputs.get("location")).upper()
    filled: Object = {
        "project": world.project(inputs),
        "projectNumber": int(world.settings.number),
        "storageClass": "STANDARD",
        "forceDestroy": False,
        "uniformBucketLevelAccess": False,
        "publicAccessPrevention": "inherited",
        "softDeletePolicy": {"retentionDurationSeconds": 604800, "effectiveTime": CREATED},
        "effectiveLabels": {},
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{id}",
        "url": f"gs://{id}",
        "timeCreated": CREATED,
        "updated": CREATED,
    }
    if location in ("US", "EU", "ASIA"):
        filled["rpo"] = "DEFAULT"
    return Thing({**plain_object(under(inputs, filled)), "location": location}, {"objects": []})


def object_id(world: World, inputs: Object) -> str:
    return f"{text(inputs.get('bucket'))}-{text(inputs.get('name'))}"


def fill_object(world: World, id: str, inputs: Object) -> Thing:
    bucket, name = text(inputs.get("bucket")), text(inputs.get("name"))
    filled: Object = {
        "contentType": "application/octet-stream",
        "storageClass": "STANDARD",
        "crc32c": mark(id, 8),
        "md5hash": mark(id, 24),
        "mediaLink": f"https://storage.googleapis.com/download/storage/v1/b/{bucket}/o/{name}",
        "outputName": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{bucket}/o/{name}",
    }
    return Thing(plain_object(under(inputs, filled)), {"target": bucket})


def account_id(world: World, inputs: Object) -> str:
    project = world.project(inputs)
    return f"projects/{project}/serviceAccounts/{text(inputs.get('accountId'))}@{project}.iam.gserviceaccount.com"


def fill_account(world: World, id: str, inputs: Object) -> Thing:
    email = last(id)
    filled: Object = {
        "project": world.project(inputs),
        "disabled": False,
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": id,
        "uniqueId": digits(id, 21),
    }
    return Thing(plain_object(under(inputs, filled)))


def service_id(world: World, inputs: Object) -> str:
    return f"{world.project(inputs)}/{text(inputs.get('service'))}"


def fill_service(world: World, id: str, inputs: Object) -> Thing:
    return Thing({**inputs, "project": world.project(inputs)})


def repository_id(world: World, inputs: Object) -> str:
    location = text(inputs.get("location")) or world.settings.region
    return f"projects/{world.project(inputs)}/locations/{location}/repositories/{text(inputs.get('repositoryId'))}"


def fill_repository(world: World, id: str, inputs: Object) -> Thing:
    project, location = id.split("/")[1], id.split("/")[3]
    filled: Object = {
        "project": project,
        "location": location,
        "name": last(id),
        "mode": "STANDARD_REPOSITORY",
        "createTime": CREATED,
        "updateTime": CREATED,
        "effectiveLabels": {},
        "registryUri": f"{location}-docker.pkg.dev/{project}/{last(id)}",
        "vulnerabilityScanningConfig": {"enablementConfig": "INHERITED", "enablementState": "SCANNING_DISABLED"},
    }
    return Thing(plain_object(under(inputs, filled)))


def key_ring_id(world: World, inputs: Object) -> str:
    return (
        f"projects/{world.project(inputs)}/locations/{text(inputs.get('location'))}/keyRings/{text(inputs.get('name'))}"
    )


def fill_key_ring(world: World, id: str, inputs: Object) -> Thing:
    return Thing({**inputs, "project": world.project(inputs)})


def crypto_key_id(world: World, inputs: Object) -> str:
    return f"{text(inputs.get('keyRing'))}/cryptoKeys/{text(inputs.get('name'))}"


def fill_crypto_key(world: World, id: str, inputs: Object) -> Thing:
    filled: Object = {
        "purpose": "ENCRYPT_DECRYPT",
        "destroyScheduledDuration": "2592000s",
        "importOnly": False,
        "cryptoKeyBackend": "",
        "effectiveLabels": {},
        "primaries": [{"name": f"{id}/cryptoKeyVersions/1", "state": "ENABLED"}],
        "versionTemplate": {"algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION", "protectionLevel": "SOFTWARE"},
    }
    return Thing(plain_object(under(inputs, filled)))


def target_of(token: str, world: World, inputs: Object) -> str:
    """Id of the thing that an IAM member belongs to; of a project its name."""
    if token == BUCKET_MEMBER:
        return last(text(inputs.get("bucket")))
    if token == ACCOUNT_MEMBER:
        return text(inputs.get("serviceAccountId"))
    if token == PROJECT_MEMBER:
        return text(inputs.get("project"))
    if token == CRYPTO_KEY_MEMBER:
        return text(inputs.get("cryptoKeyId"))
    return repository_id(world, {**inputs, "repositoryId": last(text(inputs.get("repository")))})


def member_id(token: str, world: World, inputs: Object) -> str:
    """`<target>/<role>/<member>`, of a bucket with `b/` before it; what follows the member's colon in small letters."""
    kind, colon, who = text(inputs.get("member")).partition(":")
    # Of `principal://` names upper and lower case differ; of addresses they do not.
    who = who if who.startswith("//") else who.lower()
    target = target_of(token, world, inputs)
    title = text(plain_object(inputs.get("condition")).get("title"))
    start = f"b/{target}" if token == BUCKET_MEMBER else target
    return f"{start}/{text(inputs.get('role'))}/{kind}{colon}{who}" + (f"/{title}" if title else "")


def fill_member(token: str, world: World, id: str, inputs: Object) -> Thing:
    target = target_of(token, world, inputs)
    filled: Object = {}
    if token == BUCKET_MEMBER:
        filled = {"bucket": f"b/{target}"}
    elif token == REPOSITORY_MEMBER:
        filled = {"project": target.split("/")[1], "location": target.split("/")[3], "repository": target}
    return Thing({**inputs, **filled}, {"target": target})


def etag(token: str, world: World, target: str) -> str:
    """Mark of a whole policy: it changes with every member."""
    members = [id for id, thing in world.every(token).items() if thing.own.get("target") == target]
    return "Bw" + mark(" ".join(members), 10) + "="
