"""One of each type of resource, as Google accepts it, in the order in which they can be made."""

from tests.cloud.asked import CLUSTER_ID, cluster, pool, subnetwork
from tests.rig.cloud.world import (
    ACCOUNT,
    ACCOUNT_MEMBER,
    ADDRESS,
    BUCKET,
    BUCKET_MEMBER,
    BUCKET_OBJECT,
    CLUSTER,
    CRYPTO_KEY,
    CRYPTO_KEY_MEMBER,
    FIREWALL,
    GLOBAL_ADDRESS,
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
)
from tests.rig.gcp.values import Object

EMAIL = "tpu-nodes@tpu-ray-test.iam.gserviceaccount.com"
ACCOUNT_ID = f"projects/tpu-ray-test/serviceAccounts/{EMAIL}"
RING = "projects/tpu-ray-test/locations/us-east5/keyRings/ring"
MEMBER: Object = {"role": "roles/viewer", "member": "user:Ada@Example.com"}
EACH: list[tuple[str, Object, str]] = [
    (SERVICE, {"service": "container.googleapis.com"}, "tpu-ray-test/container.googleapis.com"),
    (NETWORK, {"name": "main", "autoCreateSubnetworks": False}, "projects/tpu-ray-test/global/networks/main"),
    (SUBNETWORK, subnetwork(), "projects/tpu-ray-test/regions/us-east5/subnetworks/main"),
    (
        ROUTER,
        {"name": "main", "region": "us-east5", "network": "main"},
        "projects/tpu-ray-test/regions/us-east5/routers/main",
    ),
    (
        ROUTER_NAT,
        {
            "name": "nat",
            "region": "us-east5",
            "router": "main",
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        },
        "tpu-ray-test/us-east5/main/nat",
    ),
    (
        RESOURCE_POLICY,
        {"name": "near", "region": "us-east5", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}},
        "projects/tpu-ray-test/regions/us-east5/resourcePolicies/near",
    ),
    (GLOBAL_ADDRESS, {"name": "front"}, "projects/tpu-ray-test/global/addresses/front"),
    (ADDRESS, {"name": "front", "region": "us-east5"}, "projects/tpu-ray-test/regions/us-east5/addresses/front"),
    (
        FIREWALL,
        {"name": "in", "network": "main", "allows": [{"protocol": "tcp", "ports": ["443"]}]},
        "projects/tpu-ray-test/global/firewalls/in",
    ),
    (ACCOUNT, {"accountId": "tpu-nodes"}, ACCOUNT_ID),
    (CLUSTER, cluster(), CLUSTER_ID),
    (NODE_POOL, pool(), f"{CLUSTER_ID}/nodePools/slice"),
    (BUCKET, {"name": "checkpoints", "location": "us-east5"}, "checkpoints"),
    (BUCKET_OBJECT, {"name": "code/a.zip", "bucket": "checkpoints"}, "checkpoints-code/a.zip"),
    (BUCKET_MEMBER, {**MEMBER, "bucket": "checkpoints"}, "b/checkpoints/roles/viewer/user:ada@example.com"),
    (ACCOUNT_MEMBER, {**MEMBER, "serviceAccountId": ACCOUNT_ID}, f"{ACCOUNT_ID}/roles/viewer/user:ada@example.com"),
    (PROJECT_MEMBER, {**MEMBER, "project": "tpu-ray-test"}, "tpu-ray-test/roles/viewer/user:ada@example.com"),
    (
        REPOSITORY,
        {"repositoryId": "images", "location": "us-east5", "format": "DOCKER"},
        "projects/tpu-ray-test/locations/us-east5/repositories/images",
    ),
    (
        REPOSITORY_MEMBER,
        {**MEMBER, "repository": "images", "location": "us-east5"},
        "projects/tpu-ray-test/locations/us-east5/repositories/images/roles/viewer/user:ada@example.com",
    ),
    (KEY_RING, {"name": "ring", "location": "us-east5"}, RING),
    (CRYPTO_KEY, {"name": "state", "keyRing": RING}, f"{RING}/cryptoKeys/state"),
    (
        CRYPTO_KEY_MEMBER,
        {**MEMBER, "cryptoKeyId": f"{RING}/cryptoKeys/state"},
        f"{RING}/cryptoKeys/state/roles/viewer/user:ada@example.com",
    ),
]
