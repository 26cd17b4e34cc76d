"""What GKE does inside a cluster, over REST: nodes come and go, the Ray add-on brings its resource definitions."""

import base64
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import httpx
import yaml

from tests.rig.cloud.control_plane import ControlPlane
from tests.rig.gcp.values import Object, plain_list, plain_object

NODES = "/api/v1/nodes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TIMEOUT_S = 30.0
ALREADY_THERE, GONE = 409, 404
MERGE = {"Content-Type": "application/merge-patch+json"}


class KubernetesSide(Protocol):
    """The few things that GKE does in a cluster."""

    def install_definitions(self, files: Sequence[Path]) -> None:
        """Make the custom resource definitions of these YAML files; one that is there stays as it is."""

    def add_nodes(self, nodes: Sequence[Object]) -> None:
        """Make nodes with their taints and status; those that are there get them."""

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Take nodes away; they may be gone."""


class ApiServer:
    """The real API server's REST interface.

    Raises:
        httpx.HTTPError: it cannot be reached, or refuses.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._verify: ssl.SSLContext | bool = True
        if plane.ca_pem_base64:
            self._verify = ssl.create_default_context(cadata=base64.b64decode(plane.ca_pem_base64).decode())

    def install_definitions(self, files: Sequence[Path]) -> None:
        with self._client() as client:
            for file in files:
                for definition in _documents(file):
                    _accepted(client.post(DEFINITIONS, json=definition), ALREADY_THERE)

    def add_nodes(self, nodes: Sequence[Object]) -> None:
        with self._client() as client:
            for node in nodes:
                path = f"{NODES}/{plain_object(node.get('metadata')).get('name')}"
                _accepted(client.post(NODES, json={key: node[key] for key in node if key != "status"}), ALREADY_THERE)
                _accepted(client.patch(f"{path}/status", json={"status": node.get("status")}, headers=MERGE))
                # The API server's admission taints a new node as not ready, and nothing else here would take that away.
                _accepted(client.patch(path, json={"spec": _taints(node)}, headers=MERGE))

    def remove_nodes(self, names: Sequence[str]) -> None:
        with self._client() as client:
            for name in names:
                _accepted(client.delete(f"{NODES}/{name}"), GONE)

    def _client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self._plane.token}"} if self._plane.token else {}
        # A test's API server is on this machine: a proxy of the environment is not asked.
        return httpx.Client(
            base_url=self._plane.url, headers=headers, verify=self._verify, timeout=TIMEOUT_S, trust_env=False
        )


def _taints(node: Object) -> Object:
    return {"taints": plain_list(plain_object(node.get("spec")).get("taints"))}


def _documents(file: Path) -> Iterator[object]:
    return (document for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader) if document)


def _accepted(response: httpx.Response, *also: int) -> None:
    if response.status_code not in also:
        response.raise_for_status()
