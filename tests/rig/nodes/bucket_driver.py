"""GKE's Cloud Storage FUSE driver of one node, for buckets that are folders of this machine: it bind mounts them.

Names, checks and words are those of https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver (pkg/csi_driver). What
is not there: the sidecar, access of service accounts, and mount options other than `ro`; owners are the folder's.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc

from tests.rig.nodes.apis import CSI, PLUGIN_REGISTRATION
from tests.rig.nodes.bind_mounts import BindMounts, MountError, Mounts
from tests.rig.nodes.wire import Json, Refusal, address, end, serve

DRIVER = "gcsfuse.csi.storage.gke.io"
VENDOR_VERSION = "v1.22.6"
CSI_VERSIONS = ["1.0.0"]
"""https://github.com/kubernetes-csi/node-driver-registrar: what every driver of CSI 1 registers with."""
SOCKET = Path("plugins/gcsfuse/csi.sock")
REGISTRATION_SOCKET = Path("plugins_registry/gcsfuse.sock")
"""Below the kubelet's root folder; shorter than GKE's, for the sake of long folders. The kubelet goes by no name."""
ACCESS_MODES = range(1, 6)
"""SINGLE_NODE_WRITER to MULTI_NODE_MULTI_WRITER."""
VOLUME_MOUNT_GROUP = 6
EPHEMERAL, BUCKET, OPTIONS = "csi.storage.k8s.io/ephemeral", "bucketName", "mountOptions"
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
"""https://docs.cloud.google.com/storage/docs/buckets#naming"""


def csi_driver(project: str) -> Json:
    """The object that tells a cluster of the driver.

    https://github.com/GoogleCloudPlatform/gcs-fuse-csi-driver/blob/a199b8a26505897d82b58c9c16edcfa31c4d54ba/deploy/base/setup/csi_driver.yaml
    """
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {
            "attachRequired": False,
            "podInfoOnMount": True,
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            "requiresRepublish": True,
            "fsGroupPolicy": "None",
            "tokenRequests": [{"audience": f"{project}.svc.id.goog"}],
        },
    }


class BucketDriver:
    """What the driver of one node answers.

    Args:
        node: the node's name.
        buckets: the folder that holds a folder for each bucket.
        mounts: how folders are mounted.
    """

    def __init__(self, node: str, buckets: Path, mounts: Mounts | None = None) -> None:
        self._node, self._buckets = node, buckets
        self._mounts = BindMounts() if mounts is None else mounts
        self._published: set[Path] = set()
        self._one = threading.Lock()

    def plugin_info(self, request: Json) -> Json:
        return {"name": DRIVER, "vendor_version": VENDOR_VERSION}

    def plugin_capabilities(self, request: Json) -> Json:
        """It has no controller: buckets are there or not."""
        return {}

    def probe(self, request: Json) -> Json:
        return {"ready": {"value": True}}

    def node_info(self, request: Json) -> Json:
        return {"node_id": self._node}

    def node_capabilities(self, request: Json) -> Json:
        return {"capabilities": [{"rpc": {"type": VOLUME_MOUNT_GROUP}}]}

    def publish(self, request: Json) -> Json:
        """Show the bucket at the target; the kubelet asks again and again, since the driver wants new tokens."""
        if not request["target_path"]:
            raise _invalid("NodePublishVolume target path must be provided")
        target, bucket = Path(request["target_path"]), _bucket(request)
        options = _options(request)
        folder = self._buckets / bucket
        if not BUCKET_NAME.fullmatch(bucket) or not folder.is_dir():
            # docs/troubleshooting.md, NotFound
            words = f'failed to get GCS bucket "{bucket}": storage: bucket doesn\'t exist'
            raise Refusal(grpc.StatusCode.NOT_FOUND, words)
        with self._one:
            if self._mounts.mounted(target):
                return {}
            target.mkdir(parents=True, exist_ok=True, mode=0o750)
            try:
                self._mounts.mount(folder, target, "ro" in options)
            except MountError as error:
                words = f'failed to mount volume "{bucket}" to target path "{target}": {error}'
                raise Refusal(grpc.StatusCode.INTERNAL, words) from None
            self._published.add(target)
        return {}

    def unpublish(self, request: Json) -> Json:
        """Take the bucket away from the target, and the target too; one that is gone already is no error."""
        if not request["target_path"]:
            raise _invalid("NodeUnpublishVolume target path must be provided")
        target = Path(request["target_path"])
        with self._one:
            try:
                self._take_away(target)
            except MountError as error:
                words = f'failed to unmount target path "{target}": {error}'
                raise Refusal(grpc.StatusCode.INTERNAL, words) from None
        return {}

    def _take_away(self, target: Path) -> None:
        if self._mounts.mounted(target):
            self._mounts.unmount(target)
        if target.is_dir():
            # Not a whole tree: were it mounted still, this would be the bucket.
            target.rmdir()
        self._published.discard(target)

    def end(self) -> None:
        """Take away what a kubelet that is gone left mounted."""
        with self._one:
            for target in sorted(self._published):
                self._take_away(target)


def _invalid(words: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, words)


def _bucket(request: Json) -> str:
    """The bucket of a volume: of one that a pod declares the attribute, else what its handle begins with."""
    context: Mapping[str, str] = request["volume_context"]
    if context.get(EPHEMERAL) != "true":
        handle: str = request["volume_id"]
        return handle.partition(":")[0]
    if not context.get(BUCKET):
        raise _invalid(f'NodePublishVolume VolumeContext "{BUCKET}" must be provided for ephemeral storage')
    return context[BUCKET]


def _options(request: Json) -> set[str]:
    """The mount's options, from the three places that may name some."""
    capability: Json | None = request.get("volume_capability")
    if capability is None:
        raise _invalid("volume capability must be provided")
    mode: Json | None = capability.get("access_mode")
    if mode is None:
        raise _invalid("volume capability access mode not set")
    if mode["mode"] not in ACCESS_MODES:
        raise _invalid(f"driver does not support access mode: {mode['mode']}")
    if "mount" not in capability:
        raise _invalid("driver only supports mount access type volume capability")
    named = [*capability["mount"]["mount_flags"], *request["volume_context"].get(OPTIONS, "").split(",")]
    return {"ro", *named} if request["readonly"] else set(named)


class _Registration:
    """What the kubelet is told of the driver, and what it made of that."""

    def __init__(self, endpoint: Path) -> None:
        self._endpoint = endpoint

    def info(self, request: Json) -> Json:
        return {
            "type": "CSIPlugin",
            "name": DRIVER,
            "endpoint": str(self._endpoint),
            "supported_versions": CSI_VERSIONS,
        }

    def notify(self, request: Json) -> Json:
        if not request["plugin_registered"]:
            print(f"the kubelet does not take {DRIVER}: {request['error']}", flush=True)
        return {}


@contextmanager
def offered(driver: BucketDriver, kubelet_root: Path) -> Iterator[BucketDriver]:
    """Serve a driver to the kubelet with this root folder until the block ends; then nothing of it is mounted.

    A kubelet looks for drivers when it starts and whenever a socket comes, so that it may start later, and again.

    Raises:
        ValueError: the root's path is so long that no socket fits: `<root>/plugins_registry/gcsfuse.sock`.
    """
    socket, registry = kubelet_root / SOCKET, kubelet_root / REGISTRATION_SOCKET
    address(registry)
    identity = {
        "GetPluginInfo": driver.plugin_info,
        "GetPluginCapabilities": driver.plugin_capabilities,
        "Probe": driver.probe,
    }
    node = {
        "NodeGetInfo": driver.node_info,
        "NodeGetCapabilities": driver.node_capabilities,
        "NodePublishVolume": driver.publish,
        "NodeUnpublishVolume": driver.unpublish,
    }
    told = _Registration(socket)
    server = serve(socket, CSI.handler("Identity", identity), CSI.handler("Node", node))
    try:
        # Only now: the kubelet calls the driver as soon as it sees this socket.
        calls = {"GetInfo": told.info, "NotifyRegistrationStatus": told.notify}
        registration = serve(registry, PLUGIN_REGISTRATION.handler("Registration", calls))
        try:
            yield driver
        finally:
            end(registration, registry)
    finally:
        end(server, socket)
        driver.end()
