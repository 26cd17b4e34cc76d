"""The kubelet's side of its plugins, as far as a test needs it."""

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from tests.rig.nodes.apis import DEVICE_PLUGIN
from tests.rig.nodes.wire import Json, address, end, serve

WAIT_S = 60.0
"""How long a machine that has much else to do may take."""


@contextmanager
def kubelet(folder: Path) -> Iterator["queue.Queue[Json]"]:
    """A kubelet that takes device plugins in a folder until the block ends; what is registered is in the queue.

    Like the real one it clears the folder when it starts: pkg/kubelet/cm/devicemanager/manager.go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.sock"):
        old.unlink()
    taken: queue.Queue[Json] = queue.Queue()

    def register(request: Json) -> Json:
        taken.put(request)
        return {}

    socket = folder / "kubelet.sock"
    server = serve(socket, DEVICE_PLUGIN.handler("Registration", {"Register": register}))
    try:
        yield taken
    finally:
        end(server, socket)


@contextmanager
def watched(socket: Path) -> Iterator[Iterator[list[Json]]]:
    """The lists of devices that a plugin sends, until the block ends."""
    with grpc.insecure_channel(address(socket)) as channel:
        ask: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")
        stream = ask(DEVICE_PLUGIN.encode("Empty", {}), timeout=WAIT_S, wait_for_ready=True)
        yield (DEVICE_PLUGIN.decode("ListAndWatchResponse", data)["devices"] for data in stream)
        stream.cancel()
