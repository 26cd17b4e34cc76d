"""etcd, the Kubernetes API server and two controllers, started for one test and gone after it."""

import base64
import json
import secrets
import shlex
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.rig.cloud import control_plane as handed_out
from tests.rig.kube.parts import KUBERAY, etcd, kube_apiserver, kube_controller_manager, kuberay_crds

START_S = 300.0
"""How long it may take to come up on a machine that has much else to do."""
END_S = 5.0
"""How long a process may take to end before it is killed; an API server whose store is gone never would."""


@dataclass(frozen=True)
class ControlPlane:
    """A running API server. `token` is that of an administrator."""

    url: str
    ca_file: Path
    token: str
    kuberay: str

    @property
    def ca_pem_base64(self) -> str:
        return base64.b64encode(self.ca_file.read_bytes()).decode()

    @property
    def kubeconfig(self) -> dict[str, Any]:
        """A kubeconfig that logs an administrator in."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "rig", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "admin"}}],
            "current-context": "rig",
        }

    def client(self) -> httpx.Client:
        """A client that is logged in."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(
            base_url=self.url,
            headers=headers,
            verify=ssl.create_default_context(cafile=self.ca_file),
            trust_env=False,
            timeout=60,
        )

    def every(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list, e.g. of `/api/v1/nodes`."""
        with self.client() as client:
            found: list[dict[str, Any]] = client.get(path).raise_for_status().json()["items"]
            return found

    def take_kuberay(self, namespace: str = "") -> None:
        """Make KubeRay's definitions and, where one is named, a namespace for workloads."""
        with self.client() as client:
            for file in kuberay_crds(self.kuberay):
                definition = yaml.load(file.read_text(), yaml.CSafeLoader)
                made = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=definition)
                assert made.is_success, made.text
            if namespace:
                assert client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).is_success

    def hand_out(self, cloud_folder: Path) -> None:
        """Let the cloud in this folder give it to the clusters that are made there."""
        handed_out.write_control_plane(
            cloud_folder,
            handed_out.ControlPlane(
                url=self.url,
                ca_pem_base64=self.ca_pem_base64,
                token=self.token,
                crd_files=tuple(kuberay_crds(self.kuberay)),
            ),
        )

    def write_login_plugin(self, folder: Path) -> None:
        """Put a `gke-gcloud-auth-plugin` there that logs in here: the one thing of Google's that hands out tokens."""
        credential = {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "kind": "ExecCredential",
            "status": {"token": self.token},
        }
        file = folder / "gke-gcloud-auth-plugin"
        file.write_text(f"#!/bin/sh\nprintf '%s' {shlex.quote(json.dumps(credential))}\n")
        file.chmod(0o700)


class ControlPlaneError(Exception):
    """A part of the control plane did not come up, or ended by itself; with the end of its log."""


@dataclass(frozen=True)
class Server:
    """One process of a control plane. `log` gets all that it prints."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, binary: Path, folder: Path, flags: dict[str, str | Path]) -> "Server":
        """Start it in this process's group: what ends a test run from outside ends it too."""
        log = folder / f"{binary.name}.log"
        command = [str(binary), *(f"--{name}={value}" for name, value in flags.items())]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        return cls(binary.name, process, log)

    @property
    def dead(self) -> str:
        """How it ended by itself, with the end of its log; empty while it runs."""
        code = self.process.poll()
        return "" if code is None else f"{self.name} ended by itself with {code}; {self.last_words}"

    @property
    def last_words(self) -> str:
        """The end of its log."""
        return f"the end of {self.log}:\n{self.log.read_text(errors='replace')[-2000:]}"

    def end(self) -> None:
        """End it, and wait until it is gone."""
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def control_plane(folder: Path, kuberay: str = KUBERAY[-1], webhooks: bool = False) -> Iterator[ControlPlane]:
    """Start all of it below `folder`; `kuberay` is the release whose definitions GKE's add-on would bring.

    A namespace's deletion and the garbage collection of what is owned are Kubernetes' own. No other controllers and no
    webhooks run here: what needs them to answer is switched off, what the API server does by itself, such as the
    toleration of `google.com/tpu`, is on. With `webhooks` it asks those that are registered.

    Raises:
        ControlPlaneError: a part did not come up, or ended before it was told to.
    """
    folder.mkdir(parents=True)
    client, peer, secure = free_ports(3)
    plane = ControlPlane(
        f"https://127.0.0.1:{secure}", folder / "certificates" / "apiserver.crt", secrets.token_urlsafe(24), kuberay
    )
    store = f"http://127.0.0.1:{client}"
    servers: list[Server] = []
    try:
        servers.append(start_etcd(folder, store, f"http://127.0.0.1:{peer}"))
        servers.append(_start_api_server(folder, plane, store, secure, webhooks))
        wait_until_ready(plane, servers)
        servers.append(_start_controllers(folder, plane))
        yield plane
        if dead := [server.dead for server in servers if server.dead]:
            raise ControlPlaneError("\n".join(dead))
    finally:
        for server in reversed(servers):
            server.end()


def start_etcd(folder: Path, store: str, peers: str) -> Server:
    """Start the store; `peers` is the address that others of its kind would use."""
    flags: dict[str, str | Path] = {
        "data-dir": folder / "etcd",
        "listen-client-urls": store,
        "advertise-client-urls": store,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
        "unsafe-no-fsync": "true",
    }
    return Server.start(etcd(), folder, flags)


def _start_api_server(folder: Path, plane: ControlPlane, store: str, port: int, webhooks: bool) -> Server:
    off = ["ServiceAccount", *([] if webhooks else ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"])]
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{plane.token},admin,admin,system:masters\n")
    # It makes this key with its certificate, before it looks for the one that signs accounts' tokens.
    key = plane.ca_file.with_suffix(".key")
    flags: dict[str, str | Path] = {
        "etcd-servers": store,
        "secure-port": str(port),
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "cert-dir": plane.ca_file.parent,
        "token-auth-file": tokens,
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-cluster-ip-range": "10.96.0.0/16",
        "authorization-mode": "RBAC",
        "enable-admission-plugins": "ExtendedResourceToleration",
        "disable-admission-plugins": ",".join(off),
    }
    return Server.start(kube_apiserver(), folder, flags)


def _start_controllers(folder: Path, plane: ControlPlane) -> Server:
    login = folder / "kubeconfig.json"
    login.write_text(json.dumps(plane.kubeconfig))
    flags: dict[str, str | Path] = {
        "kubeconfig": login,
        "controllers": "namespace-controller,garbage-collector-controller",
        "leader-elect": "false",
        # Nobody asks it anything.
        "secure-port": "0",
        # A namespace is empty only after some sixty lists; at 20 requests per second that takes seconds.
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }
    return Server.start(kube_controller_manager(), folder, flags)


def wait_until_ready(plane: ControlPlane, servers: list[Server]) -> None:
    """Return when the API server answers.

    Raises:
        ControlPlaneError: one of the servers ended, or it does not.
    """
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if dead := [server.dead for server in servers if server.dead]:
            raise ControlPlaneError("\n".join(dead))
        if plane.ca_file.exists():
            try:
                with plane.client() as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except (httpx.HTTPError, ssl.SSLError):
                pass  # The port is not open yet, or the certificate is half written.
        time.sleep(0.2)
    raise ControlPlaneError(f"the API server is not ready after {START_S:.0f} s; {servers[-1].last_words}")


def free_ports(count: int) -> list[int]:
    """That many TCP ports of 127.0.0.1 that nothing listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
