"""The bucket driver of an emulated node, against a kubelet's side of the protocol. Mounts are only noted: no root."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from infra.platforms.gke.bucket_volume import DRIVER as DRIVER_OF_PODS
from infra.platforms.gke.bucket_volume import MOUNT_OPTIONS
from tests.cluster.kubelet import WAIT_S
from tests.rig.nodes.apis import CSI, PLUGIN_REGISTRATION
from tests.rig.nodes.bind_mounts import MountError, targets
from tests.rig.nodes.bucket_driver import DRIVER, REGISTRATION_SOCKET, SOCKET, BucketDriver, csi_driver, offered
from tests.rig.nodes.wire import Json

WRITER = {"mount": {}, "access_mode": {"mode": 1}}


@dataclass
class NotedMounts:
    """Mounts that are only noted; `fails` makes them fail."""

    held: dict[Path, tuple[Path, bool]] = field(default_factory=dict)
    fails: bool = False

    def mounted(self, target: Path) -> bool:
        return target in self.held

    def mount(self, source: Path, target: Path, read_only: bool) -> None:
        assert target.is_dir()
        if self.fails:
            raise MountError("mount: permission denied")
        self.held[target] = (source, read_only)

    def unmount(self, target: Path) -> None:
        del self.held[target]


@dataclass(frozen=True)
class Node:
    """A kubelet's calls to the driver of one node."""

    root: Path
    mounts: NotedMounts

    def identity(self, method: str) -> Json:
        return CSI.call(self.root / SOCKET, "Identity", method, {}, WAIT_S)

    def call(self, method: str, **request: object) -> Json:
        return CSI.call(self.root / SOCKET, "Node", method, request, WAIT_S)

    def publish(self, target: Path, bucket: str = "runs", **changes: object) -> Json:
        context = {
            "csi.storage.k8s.io/ephemeral": "true",
            "csi.storage.k8s.io/pod.name": "worker-0",
            "bucketName": bucket,
            "mountOptions": ",".join(MOUNT_OPTIONS),
        }
        request: Json = {
            "volume_id": "csi-1f",
            "target_path": str(target),
            "volume_capability": WRITER,
            "volume_context": context,
        }
        return self.call("NodePublishVolume", **{**request, **changes})

    def unpublish(self, target: Path) -> Json:
        return self.call("NodeUnpublishVolume", volume_id="csi-1f", target_path=str(target))


@pytest.fixture
def buckets(tmp_path: Path) -> Path:
    (tmp_path / "buckets" / "runs").mkdir(parents=True)
    return tmp_path / "buckets"


@pytest.fixture
def node(tmp_path: Path, buckets: Path) -> Iterator[Node]:
    mounts = NotedMounts()
    with offered(BucketDriver("host-0", buckets, mounts), tmp_path / "k"):
        yield Node(tmp_path / "k", mounts)
    assert mounts.held == {}
    assert [path for path in (tmp_path / "k").rglob("*") if not path.is_dir()] == []


def test_a_kubelet_learns_the_drivers_name_and_where_it_answers(node: Node) -> None:
    registry = node.root / REGISTRATION_SOCKET
    info = PLUGIN_REGISTRATION.call(registry, "Registration", "GetInfo", {}, WAIT_S)
    assert info == {
        "type": "CSIPlugin",
        "name": DRIVER_OF_PODS,
        "endpoint": str(node.root / SOCKET),
        "supported_versions": ["1.0.0"],
    }
    status = {"plugin_registered": True}
    assert PLUGIN_REGISTRATION.call(registry, "Registration", "NotifyRegistrationStatus", status, WAIT_S) == {}


def test_a_refused_registration_is_said(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    status = {"plugin_registered": False, "error": "no such node"}
    PLUGIN_REGISTRATION.call(
        node.root / REGISTRATION_SOCKET, "Registration", "NotifyRegistrationStatus", status, WAIT_S
    )
    assert capsys.readouterr().out == f"the kubelet does not take {DRIVER}: no such node\n"


def test_the_driver_says_what_it_is_and_can(node: Node) -> None:
    assert node.identity("GetPluginInfo")["name"] == DRIVER
    assert node.identity("GetPluginCapabilities") == {"capabilities": []}
    assert node.identity("Probe") == {"ready": {"value": True}}
    assert node.call("NodeGetInfo")["node_id"] == "host-0"
    assert node.call("NodeGetCapabilities") == {"capabilities": [{"rpc": {"type": 6}}]}
    with pytest.raises(grpc.RpcError) as refused:
        node.call("NodeGetVolumeStats", volume_id="csi-1f", volume_path="/")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_pods_bucket_comes_and_goes_however_often_it_is_asked(node: Node, buckets: Path, tmp_path: Path) -> None:
    target = tmp_path / "pods" / "uid" / "mount"
    for _ in range(2):
        assert node.publish(target) == {}
    assert node.mounts.held == {target: (buckets / "runs", False)}
    for _ in range(2):
        assert node.unpublish(target) == {}
        assert node.mounts.held == {}
        assert not target.exists()
    assert (buckets / "runs").is_dir()


@pytest.mark.parametrize(
    "changes",
    [
        {"readonly": True},
        {"volume_capability": {**WRITER, "mount": {"mount_flags": ["ro"]}}},
        {
            "volume_context": {
                "csi.storage.k8s.io/ephemeral": "true",
                "bucketName": "runs",
                "mountOptions": "implicit-dirs,ro",
            }
        },
    ],
)
def test_a_bucket_to_read_is_mounted_read_only(node: Node, buckets: Path, tmp_path: Path, changes: Json) -> None:
    node.publish(tmp_path / "mount", **changes)
    assert node.mounts.held == {tmp_path / "mount": (buckets / "runs", True)}


def test_a_volume_that_is_no_pods_own_names_its_bucket_in_its_handle(node: Node, buckets: Path, tmp_path: Path) -> None:
    node.publish(tmp_path / "mount", volume_id="runs:second", volume_context={})
    assert node.mounts.held == {tmp_path / "mount": (buckets / "runs", False)}


@pytest.mark.parametrize("bucket", ["other", "..", "../buckets/runs"])
def test_a_bucket_that_does_not_exist_is_refused_in_the_words_of_gcsfuse(
    node: Node, tmp_path: Path, bucket: str
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        node.publish(tmp_path / "mount", bucket)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert refused.value.details() == f'failed to get GCS bucket "{bucket}": storage: bucket doesn\'t exist'
    assert not (tmp_path / "mount").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_path": ""}, "target path must be provided"),
        ({"volume_capability": None}, "volume capability must be provided"),
        ({"volume_capability": {"mount": {}}}, "access mode not set"),
        ({"volume_capability": {**WRITER, "access_mode": {"mode": 7}}}, "does not support access mode: 7"),
        ({"volume_capability": {"block": {}, "access_mode": {"mode": 1}}}, "only supports mount access type"),
        ({"volume_context": {"csi.storage.k8s.io/ephemeral": "true"}}, '"bucketName" must be provided'),
    ],
)
def test_what_is_asked_wrongly_is_refused(node: Node, tmp_path: Path, changes: Json, words: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        node.publish(tmp_path / "mount", **changes)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in str(refused.value.details())
    assert node.mounts.held == {}


def test_a_mount_that_fails_says_why_and_may_be_tried_again(node: Node, buckets: Path, tmp_path: Path) -> None:
    node.mounts.fails = True
    with pytest.raises(grpc.RpcError) as refused:
        node.publish(tmp_path / "mount")
    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert str(refused.value.details()).endswith("mount: permission denied")
    node.mounts.fails = False
    node.publish(tmp_path / "mount")
    assert node.mounts.held == {tmp_path / "mount": (buckets / "runs", False)}


def test_what_a_kubelet_left_mounted_goes_with_the_driver(tmp_path: Path, buckets: Path) -> None:
    mounts = NotedMounts()
    for _ in range(3):
        # One name for all three: the socket of the driver before is gone for good.
        with offered(BucketDriver("host-0", buckets, mounts), tmp_path / "k"):
            Node(tmp_path / "k", mounts).publish(tmp_path / "mount")
            assert list(mounts.held) == [tmp_path / "mount"]
        assert mounts.held == {}
        assert not (tmp_path / "mount").exists()


def test_the_cluster_is_told_of_the_driver_that_pods_name() -> None:
    manifest = csi_driver("tpu-ray-test")
    assert manifest["metadata"]["name"] == DRIVER_OF_PODS
    assert manifest["spec"]["podInfoOnMount"] is True
    assert manifest["spec"]["attachRequired"] is False
    assert manifest["spec"]["volumeLifecycleModes"] == ["Persistent", "Ephemeral"]
    assert manifest["spec"]["tokenRequests"] == [{"audience": "tpu-ray-test.svc.id.goog"}]


def test_mounts_are_read_with_their_blanks() -> None:
    lines = (
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n"
        "37 35 98:0 / /a\\040b\\134c rw - ext3 /dev/root rw\n"
    )
    assert targets(lines) == {"/mnt2", "/a b\\c"}
