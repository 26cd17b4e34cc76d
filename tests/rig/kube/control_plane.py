"""etcd and the Kubernetes API server, started for one test and gone after it."""

import base64
import json
import os
import secrets
import shlex
import signal
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

from tests.rig.cloud import control_plane as handed_out
from tests.rig.kube.parts import KUBERAY, etcd, kube_apiserver, kuberay_crds

START_S = 300.0
"""How long the two may take to come up on a machine that has much else to do."""


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


@contextmanager
def control_plane(folder: Path, kuberay: str = KUBERAY[-1]) -> Iterator[ControlPlane]:
    """Start both below `folder`; `kuberay` is the release whose definitions GKE's add-on would bring.

    No controllers and no webhooks run here: what needs them to answer is switched off, what the API server does by
    itself, such as the toleration of `google.com/tpu`, is on.
    """
    folder.mkdir(parents=True)
    client, peer, secure = _free_ports(3)
    token = secrets.token_urlsafe(24)
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    key = folder / "service-accounts.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        store = f"http://127.0.0.1:{client}"
        peers = f"http://127.0.0.1:{peer}"
        processes.append(
            _start(
                folder / "etcd.log",
                [
                    str(etcd()),
                    f"--data-dir={folder / 'etcd'}",
                    f"--listen-client-urls={store}",
                    f"--advertise-client-urls={store}",
                    f"--listen-peer-urls={peers}",
                    f"--initial-advertise-peer-urls={peers}",
                    f"--initial-cluster=default={peers}",
                    "--unsafe-no-fsync",
                ],
            )
        )
        processes.append(
            _start(
                folder / "apiserver.log",
                [
                    str(kube_apiserver()),
                    f"--etcd-servers={store}",
                    f"--secure-port={secure}",
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    f"--cert-dir={folder / 'certificates'}",
                    f"--token-auth-file={folder / 'tokens.csv'}",
                    f"--service-account-key-file={key}",
                    f"--service-account-signing-key-file={key}",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    "--authorization-mode=RBAC",
                    "--enable-admission-plugins=ExtendedResourceToleration",
                    # No controller runs that would clear what a deletion in the foreground leaves to it.
                    "--enable-garbage-collector=false",
                    "--disable-admission-plugins=ServiceAccount,MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
                ],
            )
        )
        plane = ControlPlane(f"https://127.0.0.1:{secure}", folder / "certificates" / "apiserver.crt", token, kuberay)
        _wait(plane, processes[-1], folder / "apiserver.log")
        yield plane
    finally:
        for process in reversed(processes):
            _end(process)


def _start(log: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(plane: ControlPlane, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        if plane.ca_file.exists():
            try:
                with plane.client() as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except httpx.HTTPError:
                pass
        time.sleep(0.2)
    raise AssertionError(f"the API server did not come up:\n{log.read_text(errors='replace')[-2000:]}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
