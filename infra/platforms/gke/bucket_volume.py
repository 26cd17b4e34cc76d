"""The stack's bucket as a folder of every pod: GKE's Cloud Storage FUSE CSI driver. Pure.

Workloads read and write plain paths, on one machine as in the cloud, so that what was tried here is what runs there.
"""

from typing import Any

from infra.stack import GkePlatform

DRIVER = "gcsfuse.csi.storage.gke.io"
VOLUME = "bucket"
MOUNTS = "/mnt"

RAY_UID, RAY_GID = 1000, 100
"""Who Ray's images run as: https://github.com/ray-project/ray/blob/master/docker/base-deps/Dockerfile"""

MOUNT_OPTIONS = (
    # Objects that were put there without FUSE (the code's archives, a user's own data) have no folder objects.
    "implicit-dirs",
    f"uid={RAY_UID}",
    f"gid={RAY_GID}",
    # What one host has written the others must see at once: a checkpoint is whole only when all its files are there,
    # and by default a host remembers for a minute what it saw.
    "metadata-cache:ttl-secs:0",
    "metadata-cache:negative-ttl-secs:0",
    # A folder is renamed file by file; the default forbids it. Orbax renames a checkpoint's folder when it is written.
    "rename-dir-limit=100000",
)
"""https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/cli-options"""

ANNOTATIONS = {
    "gke-gcsfuse/volumes": "true",
    # GKE puts the sidecar in, which by default has a quarter of a CPU, 256 MiB and 5 GiB of disk: a checkpoint's files
    # are staged on that disk. What it asks of the node stays that little; only the limits are taken off.
    "gke-gcsfuse/cpu-limit": "0",
    "gke-gcsfuse/memory-limit": "0",
    "gke-gcsfuse/ephemeral-storage-limit": "0",
    "gke-gcsfuse/cpu-request": "250m",
    "gke-gcsfuse/memory-request": "256Mi",
    "gke-gcsfuse/ephemeral-storage-request": "5Gi",
}
"""https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar"""


def bucket_of(url: str) -> str:
    """The bucket's name in `gs://<bucket>/...`."""
    return url.removeprefix("gs://").partition("/")[0]


def in_pods(url: str) -> str:
    """Where a pod finds what lies at `gs://<bucket>/<path>`: `/mnt/<bucket>/<path>`, without a slash at the end.

    A text that is no `gs://` address is given back as it is.
    """
    return f"{MOUNTS}/{url.removeprefix('gs://').strip('/')}" if url.startswith("gs://") else url


def mounted(platform: GkePlatform, template: dict[str, Any]) -> dict[str, Any]:
    """A pod template with the stack's bucket mounted into its first container."""
    bucket = bucket_of(platform.storage)
    metadata, spec = template.get("metadata", {}), template["spec"]
    first, *others = spec["containers"]
    mount = {"name": VOLUME, "mountPath": f"{MOUNTS}/{bucket}"}
    volume = {
        "name": VOLUME,
        "csi": {
            "driver": DRIVER,
            "volumeAttributes": {"bucketName": bucket, "mountOptions": ",".join(MOUNT_OPTIONS)},
        },
    }
    return {
        **template,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **ANNOTATIONS}},
        "spec": {
            **spec,
            "containers": [{**first, "volumeMounts": [*first.get("volumeMounts", []), mount]}, *others],
            "volumes": [*spec.get("volumes", []), volume],
        },
    }
