"""The webhook as a server: AdmissionReviews (admission.k8s.io/v1) over HTTPS at /mutate and /validate.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

import base64
import json
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import quote, urlsplit

from tests.rig.webhook.certificate import Certificate, make_certificate
from tests.rig.webhook.given import GivenPlaces
from tests.rig.webhook.mutation import PARTS, patch, worker_to_patch
from tests.rig.webhook.numbering import told_place
from tests.rig.webhook.validation import Unreadable, check_hosts
from tests.rig.webhook.worker import CLUSTER, GROUP, Refusal

Json = dict[str, Any]
Lister = Callable[[str], list[Json]]
"""The objects that the API server has under a path, such as `ControlPlane.every`."""
SETTLE_S = 5.0
"""How long a pod may take from the webhook's answer until the API server has it; later, it is taken for failed."""
SILENCE_S = 30.0
"""How long a client may leave the server waiting."""
MUTATE, VALIDATE = "/mutate", "/validate"


class WebhookServer:
    """Answers while it is started. `said` is its log, one line for each refusal, with the reasons that no user sees.

    `without` names what it leaves out of pods on purpose, of `mutation.PARTS`; it may be set at any time.
    """

    def __init__(self, every: Lister, address: str, certificate: Certificate, settle_s: float = SETTLE_S) -> None:
        self._given = GivenPlaces(settle_s)
        self._every = every
        self._without = frozenset[str]()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate.file, certificate.key)
        self._running: tuple[_Server, threading.Thread] | None = None
        # Bound and never listening: while the webhook is away its port refuses connections, and nobody takes it.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((address, 0))
        self.address, self.port = address, int(self._held.getsockname()[1])
        self.said: list[str] = []
        self.probed: set[str] = set()
        """Paths that were asked about something that is neither a pod nor a RayCluster."""
        self.errors: list[BaseException] = []
        """Its own, of requests that got no answer."""

    @property
    def without(self) -> frozenset[str]:
        return self._without

    @without.setter
    def without(self, parts: Collection[str]) -> None:
        if unknown := set(parts) - PARTS:
            raise ValueError(
                f"the webhook writes no {', '.join(sorted(unknown))}; it writes {', '.join(sorted(PARTS))}"
            )
        self._without = frozenset(parts)

    def start(self) -> None:
        """Answer from now on, at the same port as before."""
        assert self._running is None, "the webhook runs already"
        server = _Server((self.address, self.port), self._handler(), self._tls, self.errors)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        self._running = server, thread

    def stop(self) -> None:
        """Answer what is being asked and then nothing more: connections are refused. Nothing if it is stopped."""
        if self._running:
            server, thread = self._running
            server.shutdown()
            thread.join()
            server.server_close()
            self._running = None

    def close(self) -> None:
        """End it for good."""
        self.stop()
        self._held.close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stopped while the block runs."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def answer(self, path: str, request: Json) -> Json:
        """What to say of an AdmissionRequest, without its `uid`.

        Raises:
            Refusal, Unreadable: it fails over the request.
        """
        kind = request["kind"]["kind"]
        if (path, kind) == (MUTATE, "Pod"):
            return {"allowed": True, **self._patched(request)}
        if (path, kind) != (VALIDATE, "RayCluster"):
            self.probed.add(path)
            return {"allowed": True}
        try:
            check_hosts(request["object"])
        except Refusal as error:
            self.said.append(str(error))
            return {"allowed": False, "status": {"status": "Failure", "message": str(error)}}
        return {"allowed": True}

    def _patched(self, request: Json) -> Json:
        pod, namespace = request["object"], request["namespace"]
        worker = worker_to_patch(pod)
        if worker is None:
            return {}
        place = told_place(worker)
        if place is None:
            group = quote(f"{CLUSTER}={worker.cluster},{GROUP}={worker.group}")
            pods = f"/api/v1/namespaces/{namespace}/pods?labelSelector={group}"
            dry = bool(request.get("dryRun"))
            place = self._given.give(namespace, worker, lambda: self._every(pods), dry)
        made = json.dumps(patch(pod, worker, place, self.without)).encode()
        return {"patchType": "JSONPatch", "patch": base64.b64encode(made).decode()}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        webhook = self

        class Answer(BaseHTTPRequestHandler):
            # HTTP/1.0, the default: no connection outlives its answer, so that a stopped webhook answers nobody.
            timeout = SILENCE_S

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = review["request"]
                # The API server asks for `/mutate?timeout=30s`.
                path = urlsplit(self.path).path
                try:
                    response = {"uid": request["uid"], **webhook.answer(path, request)}
                except (Refusal, Unreadable) as error:
                    # Not as an AdmissionReview: the API server passes on the text of a 403, and nothing of the reason.
                    webhook.said.append(str(error))
                    text = "Failed to mutate Pod" if path == MUTATE else "Failed to validate RayCluster"
                    self.reply(HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", f"{text}\n".encode())
                    return
                answered = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
                self.reply(HTTPStatus.OK, "application/json", json.dumps(answered).encode())

            def reply(self, status: HTTPStatus, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        return Answer


class _Server(ThreadingHTTPServer):
    # Closing waits for the answers that are under way.
    daemon_threads = False

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        tls: ssl.SSLContext,
        errors: list[BaseException],
    ) -> None:
        super().__init__(address, handler)
        self._tls, self._errors = tls, errors

    def server_bind(self) -> None:
        # Not HTTPServer's own: it asks the name service for the name of the address.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def finish_request(self, request: Any, client_address: Any) -> None:
        # Here and not where connections are accepted: who is slow to shake hands keeps nobody else waiting.
        request.settimeout(SILENCE_S)
        with self._tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # A client that gives up is no error of the webhook.
        if error is not None and not isinstance(error, OSError):
            self._errors.append(error)


@contextmanager
def webhook_server(
    every: Lister, address: str = "127.0.0.1", settle_s: float = SETTLE_S
) -> Iterator[tuple[WebhookServer, Path]]:
    """A started one with its certificate, until the block ends; an error of its own is raised there."""
    with tempfile.TemporaryDirectory(prefix="tpu-ray-webhook-") as folder:
        certificate = make_certificate(Path(folder), address)
        server = WebhookServer(every, address, certificate, settle_s)
        try:
            server.start()
            yield server, certificate.file
        finally:
            server.close()
        if server.errors:
            raise server.errors[0]
