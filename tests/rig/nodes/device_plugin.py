"""The device plugin `google.com/tpu` of one emulated TPU host: the kubelet learns of chips that are not there.

https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from tests.rig.nodes.apis import DEVICE_PLUGIN
from tests.rig.nodes.tpu_env import RequestError, check_request, chip_ids, environment, numa_node
from tests.rig.nodes.wire import Call, Context, Json, Refusal, Stream, address, end, serve
from workloads.spec import Slice

RESOURCE = "google.com/tpu"
VERSION = "v1beta1"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
FOLDER = "device-plugins"
"""Below the kubelet's root folder. A kubelet that starts empties it."""
KUBELET = "kubelet.sock"
LOOK_S = 0.2
REGISTER_S = 5.0


@dataclass(frozen=True)
class Mount:
    """A folder of this machine that every container with chips gets."""

    host_path: Path
    container_path: str
    read_only: bool = True


class DevicePlugin:
    """What one host's plugin answers.

    Args:
        shape: the slice that the host belongs to.
        host_ip: the node's address.
        mounts: what containers get beside their chips.
    """

    def __init__(self, shape: Slice, host_ip: str, mounts: Sequence[Mount] = ()) -> None:
        self.shape, self._host_ip, self._mounts = shape, host_ip, tuple(mounts)
        self._unhealthy: set[str] = set()
        self._version = 0
        self._changed = threading.Condition()

    def mark(self, chip: str, healthy: bool) -> None:
        """Tell the kubelet that a chip broke, or works again; chips are named as in `chip_ids`."""
        assert chip in chip_ids(self.shape), chip
        with self._changed:
            (self._unhealthy.discard if healthy else self._unhealthy.add)(chip)
            self._version += 1
            self._changed.notify_all()

    def options(self, request: Json) -> Json:
        """Nothing beyond allocation."""
        return {}

    def watch(self, request: Json, context: Context) -> Iterator[Json]:
        """All chips, at once and whenever one changes, until the kubelet goes."""
        context.add_callback(self._wake)
        while context.is_active():
            with self._changed:
                seen, devices = self._version, self.devices()
            yield {"devices": devices}
            with self._changed:
                self._changed.wait_for(lambda: self._version != seen or not context.is_active())  # noqa: B023

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def devices(self) -> list[Json]:
        """The chips and their health."""
        found: list[Json] = []
        for chip in chip_ids(self.shape):
            device: Json = {"ID": chip, "health": UNHEALTHY if chip in self._unhealthy else HEALTHY}
            if (node := numa_node(self.shape, chip)) is not None:
                device["topology"] = {"nodes": [{"ID": node}]}
            found.append(device)
        return found

    def allocate(self, request: Json) -> Json:
        """Environment and mounts for each container. No device files: there are no chips."""
        return {"container_responses": [self._container(one["devices_ids"]) for one in request["container_requests"]]}

    def _container(self, chips: list[str]) -> Json:
        with self._changed:
            unhealthy = set(self._unhealthy)
        try:
            check_request(self.shape, chips, unhealthy)
        except RequestError as error:
            raise Refusal(grpc.StatusCode.UNKNOWN, str(error)) from None
        return {
            "envs": environment(self.shape, self._host_ip, chips),
            "mounts": [
                {
                    "host_path": str(mount.host_path),
                    "container_path": mount.container_path,
                    "read_only": mount.read_only,
                }
                for mount in self._mounts
            ],
        }


class _Registered:
    """A plugin served in one kubelet's folder, anew for each start of the kubelet."""

    def __init__(self, plugin: DevicePlugin, folder: Path) -> None:
        self._plugin, self._folder = plugin, folder
        self._over = threading.Event()
        self._starts = 0
        self._served: tuple[grpc.Server, Path] | None = None
        self._thread = threading.Thread(target=self._follow, name=f"{RESOURCE} in {folder}")

    def start(self) -> None:
        address(self._socket(1000))
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._end()

    def _follow(self) -> None:
        known: tuple[int, ...] = ()
        while not self._over.is_set():
            kubelet = _identity(self._folder / KUBELET)
            if kubelet and (kubelet != known or self._served is None or not self._served[1].exists()):
                known = kubelet if self._register() else ()
            self._over.wait(LOOK_S)

    def _register(self) -> bool:
        """Serve on a new socket and tell the kubelet; false where it does not answer: then it is asked again."""
        self._end()
        self._starts += 1
        socket = self._socket(self._starts)
        calls: dict[str, Call | Stream] = {
            "GetDevicePluginOptions": self._plugin.options,
            "ListAndWatch": self._plugin.watch,
            "Allocate": self._plugin.allocate,
        }
        self._served = serve(socket, DEVICE_PLUGIN.handler("DevicePlugin", calls)), socket
        request = {"version": VERSION, "endpoint": socket.name, "resource_name": RESOURCE}
        with contextlib.suppress(grpc.RpcError):
            DEVICE_PLUGIN.call(self._folder / KUBELET, "Registration", "Register", request, REGISTER_S)
            return True
        return False

    def _socket(self, start: int) -> Path:
        # A new name each time: a server that ends removes its socket by name, and that may come late.
        return self._folder / f"tpu-{start}.sock"

    def _end(self) -> None:
        if self._served is not None:
            end(*self._served)
            self._served = None


def _identity(path: Path) -> tuple[int, ...]:
    """What tells a file from its successor under the same name; empty where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_ctime_ns


@contextmanager
def registered(plugin: DevicePlugin, kubelet_root: Path) -> Iterator[DevicePlugin]:
    """Serve a plugin to the kubelet with this root folder until the block ends, also when the kubelet starts again.

    The kubelet may start later.

    Raises:
        ValueError: the root's path is so long that no socket fits: `<root>/device-plugins/tpu-1.sock`.
    """
    served = _Registered(plugin, kubelet_root / FOLDER)
    served.start()
    try:
        yield plugin
    finally:
        served.stop()
