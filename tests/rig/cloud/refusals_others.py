"""What Google refuses of APIs, service accounts, IAM members, buckets, repositories and keys."""

from collections.abc import Callable

from tests.rig.cloud import buckets
from tests.rig.cloud.refused import Refused, conflict, forbidden, not_found
from tests.rig.cloud.refused import bad_request as refuse
from tests.rig.cloud.world import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    ADDRESS,
    BUCKET,
    BUCKET_MEMBER,
    CLUSTER,
    CRYPTO_KEY,
    CRYPTO_KEY_MEMBER,
    FIREWALL,
    GLOBAL_ADDRESS,
    IDENTITY_POOL,
    KEY_RING,
    NETWORK,
    NODE_POOL,
    PROJECT_MEMBER,
    REPOSITORY,
    REPOSITORY_MEMBER,
    RESOURCE_POLICY,
    ROUTER,
    ROUTER_NAT,
    SERVICE,
    SUBNETWORK,
    World,
    last,
    text,
)
from tests.rig.gcp.values import Object, plain_list

COMPUTE_APIS = (NETWORK, SUBNETWORK, ROUTER, ROUTER_NAT, RESOURCE_POLICY, GLOBAL_ADDRESS, ADDRESS, FIREWALL)
APIS = {
    **dict.fromkeys(COMPUTE_APIS, ("compute.googleapis.com", "Compute Engine API")),
    **dict.fromkeys((CLUSTER, NODE_POOL), ("container.googleapis.com", "Kubernetes Engine API")),
    **dict.fromkeys((ACCOUNT, ACCOUNT_MEMBER), ("iam.googleapis.com", "Identity and Access Management (IAM) API")),
    PROJECT_MEMBER: ("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API"),
    **dict.fromkeys((REPOSITORY, REPOSITORY_MEMBER), ("artifactregistry.googleapis.com", "Artifact Registry API")),
    **dict.fromkeys(
        (KEY_RING, CRYPTO_KEY, CRYPTO_KEY_MEMBER),
        ("cloudkms.googleapis.com", "Cloud Key Management Service (KMS) API"),
    ),
}


def api_disabled(world: World, token: str) -> None:
    """https://github.com/opstrace/opstrace/pull/128 and https://github.com/appvia/kore/issues/286"""
    enabled, needed = world.settings.enabled_apis, APIS.get(token)
    if enabled is None or needed is None:
        return
    api, name = needed
    number = world.settings.number
    if api not in enabled and world.get(SERVICE, f"{world.settings.project}/{api}") is None:
        raise forbidden(
            f"{name} has not been used in project {number} before or it is disabled. Enable it by visiting "
            f"https://console.developers.google.com/apis/api/{api}/overview?project={number} then retry. If you "
            "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
            "accessNotConfigured",
        )


def account_missing(world: World, email: str) -> None:
    """An account of this project that is not there: https://github.com/midl-dev/tezos-on-gke/issues/45"""
    settings = world.settings
    if email in ("default", f"{settings.number}-compute@developer.gserviceaccount.com"):
        if settings.default_service_account:
            return
        email = f"{settings.number}-compute@developer.gserviceaccount.com"
    elif not email.endswith(f"@{settings.project}.iam.gserviceaccount.com"):
        return
    if world.get(ACCOUNT, f"projects/{settings.project}/serviceAccounts/{email}") is None:
        raise refuse(f'Service account "{email}" does not exist.')


def account_taken(world: World, id: str, inputs: Object) -> None:
    """https://github.com/vanvalenlab/kiosk-console/issues/195"""
    if world.get(ACCOUNT, id) is not None and inputs.get("createIgnoreAlreadyExists") is not True:
        project = world.project(inputs)
        raise conflict(
            f"Service account {text(inputs.get('accountId'))} already exists within project projects/{project}."
        )


def bucket_taken(world: World, id: str, inputs: Object) -> None:
    """https://github.com/terraform-google-modules/terraform-google-cloud-storage/pull/238; of another project:
    https://github.com/percona/mongo_terraform_ansible/issues/24
    """
    thing = world.get(BUCKET, id)
    if thing is None:
        return
    if text(thing.outputs.get("project")) == world.project(inputs):
        raise conflict("Your previous request to create the named bucket succeeded and you already own it.", "conflict")
    raise conflict(
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please "
        "select a different name and try again.",
        "conflict",
    )


def object_of_no_bucket(world: World, id: str, inputs: Object) -> None:
    """https://docs.cloud.google.com/storage/docs/json_api/v1/status-codes#404-not-found; a second object of one name
    takes the place of the first.
    """
    if world.get(BUCKET, text(inputs.get("bucket"))) is None:
        raise not_found("The specified bucket does not exist.")


def bucket_full(world: World, id: str, state: Object) -> None:
    """The provider lists the objects first: terraform-provider-google-beta, resource_storage_bucket.go"""
    thing = world.get(BUCKET, id)
    full = thing is not None and (plain_list(thing.own.get("objects")) or not buckets.empty(world.settings, id))
    if full and state.get("forceDestroy") is not True:
        raise Refused(f"Error trying to delete bucket {id} without `force_destroy` set to true")


def key_ring_taken(world: World, id: str, inputs: Object) -> None:
    """Key rings are for ever: https://github.com/hashicorp/terraform-provider-google/issues/1214"""
    if world.get(KEY_RING, id) is not None:
        raise conflict(f"KeyRing {id} already exists.")


def crypto_key_taken(world: World, id: str, inputs: Object) -> None:
    """So are keys; only their versions are destroyed.

    https://docs.cloud.google.com/kms/docs/object-hierarchy#lifetimes
    """
    if world.get(CRYPTO_KEY, id) is not None:
        raise conflict(f"CryptoKey {id} already exists.")


def repository_taken(world: World, id: str, inputs: Object) -> None:
    """Our words; a name is unique: https://docs.cloud.google.com/artifact-registry/docs/repositories/create-repos"""
    if world.get(REPOSITORY, id) is not None:
        raise conflict("the repository already exists.")


def key_ring_missing(world: World, id: str, inputs: Object) -> None:
    """Our words; a key is made in a ring: https://docs.cloud.google.com/kms/docs/object-hierarchy"""
    ring = text(inputs.get("keyRing"))
    if world.get(KEY_RING, ring) is None:
        raise not_found(f"KeyRing {ring} not found.")


def identity_pool_missing(world: World, member: str) -> None:
    """The project's pool comes with its first cluster with Workload Identity.

    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/916 and
    https://github.com/googleforgames/global-multiplayer-demo/issues/39 for `serviceAccount:<pool>[...]` members
    """
    settings = world.settings
    pool = f"{settings.project}.svc.id.goog"
    full = f"projects/{settings.number}/locations/global/workloadIdentityPools/{pool}"
    named = pool if member.startswith(f"serviceAccount:{pool}[") else full if f"/{full}/" in member else ""
    if named and not settings.identity_pool and world.get(IDENTITY_POOL, pool) is None:
        raise refuse(
            f"Identity Pool does not exist ({named}). Please check that you specified a valid resource name as "
            "returned in the `name` attribute in the configuration API."
        )


def member_account_missing(world: World, member: str) -> None:
    """https://github.com/hashicorp/vault-plugin-secrets-gcp/issues/237"""
    kind, _, email = member.partition(":")
    project = world.settings.project
    ours = kind == "serviceAccount" and email.endswith(f"@{project}.iam.gserviceaccount.com")
    if ours and world.get(ACCOUNT, f"projects/{project}/serviceAccounts/{email}") is None:
        raise refuse(f"Service account {email} does not exist.")


def member_of_nothing(world: World, token: str, target: str) -> None:
    """A policy belongs to something that is there.

    https://docs.cloud.google.com/storage/docs/json_api/v1/status-codes#404-not-found
    """
    answers: dict[str, tuple[str, Callable[[], Refused]]] = {
        BUCKET_MEMBER: (BUCKET, lambda: not_found("The specified bucket does not exist.")),
        ACCOUNT_MEMBER: (ACCOUNT, lambda: not_found(f"Unknown service account {last(target)}")),
        REPOSITORY_MEMBER: (REPOSITORY, lambda: not_found("Requested entity was not found.")),
        CRYPTO_KEY_MEMBER: (CRYPTO_KEY, lambda: not_found(f"CryptoKey {target} not found.")),
    }
    kind, answer = answers.get(token, ("", lambda: not_found(target)))
    if kind and world.get(kind, target) is None:
        raise answer()
