"""The inputs behind the observed plan results (`tests/rig/gcp/data/probes.json`), which names its cases in words only.

`BASE` holds each resource's inputs before an edit: those of its observed `create-plan`, without what the provider
fills in. `CREATES` are the inputs of the cases that only make a resource. An edit is a list of paths with their new
value; None takes the property away.
"""

from tests.rig.gcp.values import Object, Value

Edit = list[tuple[str, Value]]

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
BUCKET = "gcp:storage/bucket:Bucket"
BUCKET_MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
ACCOUNT = "gcp:serviceaccount/account:Account"
SERVICE = "gcp:projects/service:Service"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
KEY_RING = "gcp:kms/keyRing:KeyRing"
KEY = "gcp:kms/cryptoKey:CryptoKey"

BASE: dict[str, Object] = {
    POOL: {
        "name": "tpu",
        "cluster": "projects/proj/locations/us-central1-a/clusters/c",
        "location": "us-central1-a",
        "nodeCount": 4,
        "autoscaling": {"minNodeCount": 0, "maxNodeCount": 4},
        "management": {"autoRepair": True, "autoUpgrade": True},
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
        "nodeConfig": {
            "machineType": "ct5lp-hightpu-4t",
            "diskSizeGb": 100,
            "diskType": "pd-balanced",
            "imageType": "COS_CONTAINERD",
            "gvnic": {"enabled": True},
            "labels": {"a": "b"},
            "metadata": {"disable-legacy-endpoints": "true"},
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "reservationAffinity": {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["r"],
            },
            "resourceLabels": {"x": "y"},
            "serviceAccount": "sa@p.iam",
            "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
            "spot": False,
            "tags": ["t"],
            "taints": [{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}],
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        },
    },
    CLUSTER: {
        "name": "c",
        "project": "proj",
        "location": "us-central1",
        "network": "projects/proj/global/networks/n",
        "subnetwork": "projects/proj/regions/us-central1/subnetworks/s",
        "initialNodeCount": 1,
        "removeDefaultNodePool": True,
        "deletionProtection": False,
        "minMasterVersion": "1.33",
        "addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}},
        "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "svcs"},
        "nodeConfig": {"machineType": "e2-medium"},
        "privateClusterConfig": {"enablePrivateNodes": True, "masterIpv4CidrBlock": "172.16.0.0/28"},
        "releaseChannel": {"channel": "RAPID"},
        "resourceLabels": {"a": "b"},
        "workloadIdentityConfig": {"workloadPool": "proj.svc.id.goog"},
    },
    NETWORK: {"name": "n", "autoCreateSubnetworks": False, "mtu": 1460, "routingMode": "REGIONAL"},
    SUBNETWORK: {
        "name": "s",
        "network": "projects/proj/global/networks/n",
        "region": "us-central1",
        "ipCidrRange": "10.0.0.0/20",
        "privateIpGoogleAccess": True,
        "secondaryIpRanges": [
            {"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"},
            {"rangeName": "svcs", "ipCidrRange": "10.8.0.0/20"},
        ],
    },
    ROUTER: {"name": "r", "network": "n", "region": "us-central1", "bgp": {"asn": 64514}},
    NAT: {
        "name": "nat",
        "router": "r",
        "region": "us-central1",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    },
    POLICY: {
        "name": "p",
        "region": "us-central1",
        "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4"},
    },
    BUCKET: {
        "name": "b",
        "project": "proj",
        "location": "US",
        "labels": {"a": "b"},
        "uniformBucketLevelAccess": True,
        "versioning": {"enabled": True},
        "lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
    },
    BUCKET_MEMBER: {"bucket": "b/b", "role": "roles/storage.objectViewer", "member": "user:a@b.c"},
    ACCOUNT: {"accountId": "my-account", "displayName": "d"},
    SERVICE: {"service": "tpu.googleapis.com"},
    REPOSITORY: {"repositoryId": "r", "format": "DOCKER", "location": "us"},
    KEY_RING: {"name": "r", "location": "us"},
    KEY: {"name": "k", "keyRing": "projects/p/locations/us/keyRings/r"},
}

INLINE_POOL: Value = [{"name": "p", "nodeCount": 1, "nodeConfig": {"machineType": "e2-medium"}}]

CREATES: dict[str, dict[str, Object]] = {
    CLUSTER: {
        "create: node_version with remove_default_node_pool": {
            "name": "c",
            "location": "us-central1",
            "removeDefaultNodePool": True,
            "nodeVersion": "1.33.1",
        },
        "create: min_master != node_version": {
            "name": "c",
            "location": "us-central1",
            "minMasterVersion": "1.33.1",
            "nodeVersion": "1.32.1",
        },
        "create: autopilot + remove_default_node_pool": {
            "name": "c",
            "location": "us-central1",
            "enableAutopilot": True,
            "removeDefaultNodePool": True,
        },
        "create: autopilot": {"name": "c", "location": "us-central1", "enableAutopilot": True},
        "create: minimal": {"name": "c", "location": "us-central1", "initialNodeCount": 1},
        "create: node_pool + node_config": {
            "name": "c",
            "location": "us-central1",
            "nodeConfig": {"machineType": "a"},
            "nodePools": [{"name": "p", "nodeCount": 1}],
        },
    },
    POOL: {
        "create: minimal": {"cluster": "c", "nodeCount": 1},
        "create: initial_node_count and node_count": {"cluster": "c", "nodeCount": 1, "initialNodeCount": 1},
        "create: name+name_prefix": {"cluster": "c", "name": "a", "namePrefix": "b"},
        "create: bad effect": {
            "cluster": "c",
            "nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
        },
        "create: cidr bad reservation": {
            "cluster": "c",
            "nodeConfig": {"reservationAffinity": {"consumeReservationType": "FOO"}},
        },
    },
    NETWORK: {"create-minimal": {"name": "n"}},
    POLICY: {"create-plan workload": BASE[POLICY]},
    BUCKET: {"create-minimal": {"name": "b", "location": "us-central1"}},
    BUCKET_MEMBER: {"create bad member": {"bucket": "b", "role": "r", "member": "foo@bar"}},
    ACCOUNT: {"create bad id": {"accountId": "abc"}},
    SERVICE: {"create bad": {"service": "tpu"}},
}
