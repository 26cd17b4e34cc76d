"""The webhook of a real API server: started, registered, and in effect while a block runs."""

import base64
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from tests.rig.kube.control_plane import ControlPlane
from tests.rig.webhook.server import MUTATE, SETTLE_S, VALIDATE, WebhookServer, webhook_server
from tests.rig.webhook.worker import APP, KUBERAY

Json = dict[str, Any]
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
NAME = "ray-tpu-webhook"
PROBE = "ray-tpu-webhook/probe"
UNTOUCHED = ("kube-system", "kube-node-lease")
TIMEOUT_S = 30
EFFECT_S = 120.0
"""How long the API server may take until it asks a webhook that it was told of."""


@contextmanager
def webhook(
    plane: ControlPlane, address: str = "127.0.0.1", without: Collection[str] = (), settle_s: float = SETTLE_S
) -> Iterator[WebhookServer]:
    """Let it decide over every pod and RayCluster that is made, until the block ends.

    The API server, which must run with its webhooks on, reaches it at `address`, an IP address of this machine.
    `without` names parts of a pod that it leaves out on purpose.
    """
    with webhook_server(plane.every, address, settle_s) as (server, certificate), plane.client() as client:
        server.without = frozenset(without)
        mark = secrets.token_hex(8)
        paths = []
        try:
            for kind, body in registrations(server, certificate.read_bytes(), mark).items():
                made = client.post(f"{REGISTRATIONS}/{kind}", json=body)
                assert made.is_success, made.text
                paths.append(f"{REGISTRATIONS}/{kind}/{NAME}")
            _wait_for_effect(client, server, mark)
            yield server
        finally:
            # Where the API server is gone itself, so are they.
            with suppress(httpx.TransportError):
                for path in paths:
                    client.delete(path)


def registrations(server: WebhookServer, certificate: bytes, mark: str) -> dict[str, Json]:
    """Both configurations by the plural of their kinds. Each has a second entry, for config maps with this mark: by
    its being asked one sees that the first is in effect too."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    clusters = {"apiGroups": ["ray.io"], "apiVersions": ["v1"], "resources": ["rayclusters"]}
    probes = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(UNTOUCHED)}
    kuberays = {"objectSelector": {"matchLabels": {APP: KUBERAY}}}
    marked = {"objectSelector": {"matchLabels": {PROBE: mark}}}
    found = {}
    for kind, path, rule, selector in (
        ("MutatingWebhookConfiguration", MUTATE, pods, kuberays),
        ("ValidatingWebhookConfiguration", VALIDATE, clusters, {}),
    ):
        common = {
            "clientConfig": {
                "url": f"https://{server.address}:{server.port}{path}",
                "caBundle": base64.b64encode(certificate).decode(),
            },
            "failurePolicy": "Fail",
            # It remembers whom it gave a number, but not of a dry run.
            "sideEffects": "NoneOnDryRun",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT_S,
            "namespaceSelector": {"matchExpressions": [elsewhere]},
        }
        entries = (("ray", rule, selector), ("probe", probes, marked))
        webhooks = [
            {"name": f"{name}.{NAME}{path.replace('/', '.')}", "rules": [{**what, "operations": ["CREATE"]}], **common}
            | which
            for name, what, which in entries
        ]
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
        found[f"{kind.lower()}s"] = {**body, "webhooks": webhooks}
    return found


def _wait_for_effect(client: httpx.Client, server: WebhookServer, mark: str) -> None:
    body = {"metadata": {"name": "probe", "labels": {PROBE: mark}}}
    until = time.monotonic() + EFFECT_S
    while server.probed != {MUTATE, VALIDATE}:
        assert time.monotonic() < until, f"the API server asks no webhook after {EFFECT_S:.0f} s; are its webhooks on?"
        # The namespace is made a little after the API server is ready.
        client.post("/api/v1/namespaces/default/configmaps", params={"dryRun": "All"}, json=body)
        time.sleep(0.1)
