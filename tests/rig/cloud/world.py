"""The cloud as one call sees it, and how Google writes the names of things."""

import hashlib
import re
from dataclasses import dataclass

from tests.rig.cloud.held import Thing, Things
from tests.rig.cloud.settings import Settings
from tests.rig.gcp.values import Object, Value

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
ROUTER = "gcp:compute/router:Router"
ROUTER_NAT = "gcp:compute/routerNat:RouterNat"
RESOURCE_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
GLOBAL_ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
ADDRESS = "gcp:compute/address:Address"
FIREWALL = "gcp:compute/firewall:Firewall"
BUCKET = "gcp:storage/bucket:Bucket"
BUCKET_OBJECT = "gcp:storage/bucketObject:BucketObject"
BUCKET_MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
ACCOUNT = "gcp:serviceaccount/account:Account"
ACCOUNT_MEMBER = "gcp:serviceaccount/iAMMember:IAMMember"
PROJECT_MEMBER = "gcp:projects/iAMMember:IAMMember"
SERVICE = "gcp:projects/service:Service"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
REPOSITORY_MEMBER = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
KEY_RING = "gcp:kms/keyRing:KeyRing"
CRYPTO_KEY = "gcp:kms/cryptoKey:CryptoKey"
CRYPTO_KEY_MEMBER = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
IDENTITY_POOL = "identity pool"
"""Not a resource of the provider: GKE makes `<project>.svc.id.goog` with the first cluster that wants it."""
OBJECT = "object in a bucket"
"""Not a resource of the stacks: pods write it. Its id is `<bucket>/<name>`, its own `content` is what it holds."""

COMPUTE_URL = "https://www.googleapis.com/compute/v1/"
CREATED = "2026-12-02T00:00:00.000-08:00"
"""When everything was made: a state that is compared twice shall be the same twice."""


@dataclass(frozen=True)
class World:
    """Settings and holdings within one change."""

    settings: Settings
    things: Things

    def project(self, inputs: Object) -> str:
        """The project of an object."""
        return text(inputs.get("project")) or self.settings.project

    def region(self, inputs: Object) -> str:
        """The region of a regional object."""
        return last(text(inputs.get("region"))) or self.settings.region

    def get(self, token: str, id: str) -> Thing | None:
        return self.things.get(token, id)

    def every(self, token: str) -> dict[str, Thing]:
        return self.things.every(token)


def text(value: Value) -> str:
    """The value where it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def whole(value: Value) -> int:
    """The value where it is a number, else 0."""
    return int(value) if isinstance(value, int | float) else 0


def last(path: str) -> str:
    """The name at the end of a path or URL."""
    return path.rstrip("/").rpartition("/")[2]


def digits(seed: str, count: int) -> str:
    """A number of so many digits that is always the same for the same thing."""
    number = int(hashlib.sha256(seed.encode()).hexdigest(), 16) % 10**count
    return str(number).rjust(count, "1")


def mark(seed: str, count: int) -> str:
    """Letters and digits, always the same for the same thing."""
    return hashlib.sha256(seed.encode()).hexdigest()[:count]


def region_of(location: str) -> str:
    """The region of a zone; a region itself."""
    return location.rpartition("-")[0] if is_zone(location) else location


def is_zone(location: str) -> bool:
    """Whether a location is a zone: `us-east5-b`, `us-central1-ai1a`."""
    return location.count("-") == 2


def zones_of(location: str) -> list[str]:
    """The zones in which the nodes of a cluster lie by default: its own, or three of its region.

    https://docs.cloud.google.com/compute/docs/regions-zones
    """
    if is_zone(location):
        return [location]
    letters = {"us-east1": "bcd", "europe-west1": "bcd", "us-central2": "b"}.get(location, "abc")
    return [f"{location}-{letter}" for letter in letters]


def network_id(world: World, given: str) -> str:
    """`projects/<project>/global/networks/<name>` of a name, path or URL."""
    found = re.search(r"projects/[^/]+/global/networks/[^/]+$", given)
    return found[0] if found else f"projects/{world.settings.project}/global/networks/{last(given) or 'default'}"


def subnetwork_id(world: World, given: str, region: str) -> str:
    """`projects/<project>/regions/<region>/subnetworks/<name>` of a name, path or URL."""
    found = re.search(r"projects/[^/]+/regions/[^/]+/subnetworks/[^/]+$", given)
    named = f"projects/{world.settings.project}/regions/{region}/subnetworks/{last(given) or 'default'}"
    return found[0] if found else named


def cluster_id(world: World, pool: Object) -> str:
    """Id of the cluster of a node pool; the pool names it by id, or by name beside project and location."""
    given = text(pool.get("cluster"))
    if given.startswith("projects/"):
        return given
    return f"projects/{world.project(pool)}/locations/{text(pool.get('location'))}/clusters/{given}"


def under(given: Value, filled: Value) -> Value:
    """What was given, and what Google fills in where nothing was given, block by block."""
    if isinstance(given, dict) and isinstance(filled, dict):
        both = {name: under(given.get(name), value) for name, value in filled.items()}
        return {**{name: value for name, value in given.items() if value is not None}, **both}
    return filled if given is None else given
