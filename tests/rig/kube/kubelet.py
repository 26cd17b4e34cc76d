"""A small double of the kubelets of a control plane: one server that hands out what containers print.

The API server asks `GET /containerLogs/<namespace>/<pod>/<container>` (k8s.io/kubernetes/pkg/kubelet/server/server.go).
"""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.rig.kube.control_plane import ControlPlane
from tests.rig.kube.kuberay import own_address

LOOK_S = 0.1
Json = dict[str, Any]


class Kubelet:
    """`logs` is what each (pod, container) has printed; `ended` are the pods that print nothing more."""

    def __init__(self, plane: ControlPlane, address: str, port: int) -> None:
        self._plane, self._address, self._port = plane, address, port
        self.logs: dict[tuple[str, str], list[str]] = {}
        self.ended: set[str] = set()

    def make_node(self, name: str, labels: dict[str, str], ready: bool = True) -> None:
        """A node whose kubelet this is."""
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {
            "addresses": [{"type": "InternalIP", "address": self._address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "conditions": conditions,
        }
        with self._plane.client() as client:
            made = client.post("/api/v1/nodes", json={"metadata": {"name": name, "labels": labels}, "status": status})
            assert made.is_success, made.text


@contextmanager
def kubelet(plane: ControlPlane) -> Iterator[Kubelet]:
    """Run it until the block ends."""
    address = own_address()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            _, _, _, pod, container = url.path.split("/")
            query = parse_qs(url.query)
            lines = running.logs.get((pod, container))
            if lines is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            at = max(0, len(lines) - int(query["tailLines"][0])) if "tailLines" in query else 0
            while True:
                for line in lines[at:]:
                    self.chunk(f"{line}\n".encode())
                    at += 1
                if "follow" not in query or (pod in running.ended and at == len(lines)) or over.is_set():
                    break
                time.sleep(LOOK_S)
            self.chunk(b"")

        def chunk(self, text: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    over = threading.Event()
    with ThreadingHTTPServer((address, 0), Answer) as server:
        trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Whose certificate it is does not matter: this API server was told no authority of kubelets.
        trust.load_cert_chain(plane.ca_file, plane.ca_file.with_suffix(".key"))
        server.socket = trust.wrap_socket(server.socket, server_side=True)
        running = Kubelet(plane, address, server.server_address[1])
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            over.set()
            server.shutdown()
            thread.join()
