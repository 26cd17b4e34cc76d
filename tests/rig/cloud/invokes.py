"""The provider's functions."""

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.rig.cloud import buckets
from tests.rig.cloud.refused import Refused
from tests.rig.cloud.world import CLUSTER, CREATED, OBJECT, World, text
from tests.rig.gcp.values import Object, Value, plain_object

VERSIONS = "gcp:container/getEngineVersions:getEngineVersions"
GET_CLUSTER = "gcp:container/getCluster:getCluster"
PROJECT = "gcp:organizations/getProject:getProject"
CLIENT_CONFIG = "gcp:organizations/getClientConfig:getClientConfig"
OBJECTS = "gcp:storage/getBucketObjects:getBucketObjects"
CONTENT = "gcp:storage/getBucketObjectContent:getBucketObjectContent"
TOKEN = "ya29.token-of-the-double"
SCHEMA = Path(__file__).parents[1] / "gcp" / "data" / "schema.json"
NOT_KNOWN_TO_GOOGLE = ("deletionProtection", "removeDefaultNodePool", "ignoreNodeCountChanges", "skipNodePoolRefresh")


def answer(world: World, token: str, args: Object, cluster: Callable[[str], Object]) -> Object:
    """What the function gives.

    Args:
        cluster: a cluster's properties by its id.
    """
    settings = world.settings
    if token == VERSIONS:
        return _versions(world, args)
    if token == GET_CLUSTER:
        return _cluster(world, args, cluster)
    if token == PROJECT:
        project = text(args.get("projectId")) or settings.project
        return {
            "id": f"projects/{project}",
            "projectId": project,
            "number": settings.number,
            "name": project,
            "orgId": "",
            "folderId": "",
            "billingAccount": "",
            "autoCreateNetwork": False,
            "labels": {},
            "effectiveLabels": {},
            "pulumiLabels": {},
            "tags": {},
        }
    if token == OBJECTS:
        return _objects(world, args)
    if token == CONTENT:
        return _content(world, args)
    place = f"projects/{settings.project}/regions/{settings.region}/zones/{settings.zone}"
    return {
        "id": place,
        "project": settings.project,
        "region": settings.region,
        "zone": settings.zone,
        "defaultLabels": {},
        "accessToken": TOKEN,
    }


def _versions(world: World, args: Object) -> Object:
    prefix, settings = text(args.get("versionPrefix")), world.settings
    valid: list[Value] = [version for version in settings.versions if version.startswith(prefix)]
    latest = valid[0] if valid else ""
    return {
        "id": CREATED,
        "location": text(args.get("location")) or settings.region,
        "project": text(args.get("project")) or settings.project,
        "versionPrefix": prefix,
        "defaultClusterVersion": settings.channels.get("REGULAR", settings.versions[0]),
        "latestMasterVersion": latest,
        "latestNodeVersion": latest,
        "validMasterVersions": valid,
        "validNodeVersions": list(valid),
        "releaseChannelDefaultVersion": dict(settings.channels),
        "releaseChannelLatestVersion": dict(settings.channels),
        "releaseChannelUpgradeTargetVersion": dict(settings.channels),
    }


def _objects(world: World, args: Object) -> Object:
    """https://cloud.google.com/storage/docs/json_api/v1/objects/list: in the order of their names."""
    bucket, prefix = text(args.get("bucket")), text(args.get("prefix"))
    held = [id.removeprefix(f"{bucket}/") for id in world.every(OBJECT) if id.startswith(f"{bucket}/{prefix}")]
    names = sorted({*held, *buckets.files(world.settings, bucket, prefix)})
    found: list[Value] = [
        {
            "name": name,
            "contentType": "application/json",
            "mediaLink": f"https://storage.googleapis.com/download/storage/v1/b/{bucket}/o/{name}",
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{bucket}/o/{name}",
            "storageClass": "STANDARD",
        }
        for name in names
    ]
    return {"id": CREATED, "bucket": bucket, "prefix": prefix, "matchGlob": "", "bucketObjects": found}


def _content(world: World, args: Object) -> Object:
    bucket, name = text(args.get("bucket")), text(args.get("name"))
    thing = world.get(OBJECT, f"{bucket}/{name}")
    content = buckets.content(world.settings, bucket, name) if thing is None else thing.own["content"]
    if content is None:
        # data_source_storage_bucket_object_content.go
        raise Refused(f"Error downloading storage bucket object: googleapi: got HTTP response code 404 for {name}")
    return {"id": CREATED, "bucket": bucket, "name": name, "content": content}


def cluster_not_found(world: World, id: str) -> None:
    """terraform-provider-google-beta, data_source_google_container_cluster.go"""
    if world.get(CLUSTER, id) is None:
        raise Refused(f"{id} not found")


def _cluster(world: World, args: Object, cluster: Callable[[str], Object]) -> Object:
    location = text(args.get("location")) or world.settings.region
    id = f"projects/{world.project(args)}/locations/{location}/clusters/{text(args.get('name'))}"
    cluster_not_found(world, id)
    known = {name: value for name, value in cluster(id).items() if name not in NOT_KNOWN_TO_GOOGLE}
    return {**listed(known, _fields()), "id": id}


@functools.cache
def _fields() -> Object:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return plain_object(schema[GET_CLUSTER]["outputs"])


def listed(value: Object, fields: Object) -> Object:
    """A block in a function's form: each block within it is a list, under a name in the plural."""
    result: Object = {}
    for name, field in fields.items():
        prop = plain_object(field)
        found = next((value[one] for one in _singulars(name) if value.get(one) is not None), None)
        inner = plain_object(prop.get("fields"))
        if inner:
            blocks = found if isinstance(found, list) else [] if found is None else [found]
            result[name] = [listed(plain_object(block), inner) for block in blocks]
        elif found is not None:
            result[name] = found
        elif prop.get("type") in ("list", "map"):
            result[name] = [] if prop["type"] == "list" else {}
        else:
            result[name] = {"bool": False, "int": 0, "number": 0}.get(text(prop.get("type")), "")
    return result


def _singulars(name: str) -> Iterable[str]:
    yield name
    if name.endswith("ies"):
        yield name[:-3] + "y"
    if name.endswith("es"):
        yield name[:-2]
    if name.endswith("s"):
        yield name[:-1]
