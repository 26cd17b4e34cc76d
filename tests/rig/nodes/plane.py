"""A control plane as a cluster has it: the API server with all its admission, every controller, the scheduler."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.kube.control_plane import ControlPlane, ControlPlaneError, Server, start_etcd, wait_until_ready
from tests.rig.kube.parts import kube_apiserver, kube_controller_manager, kube_scheduler
from tests.rig.nodes.network import GATEWAY, SERVICES

PORT = 6443
STORE = "http://127.0.0.1:2379"
START_ADMISSION = "ExtendedResourceToleration"
"""GKE puts the toleration of `google.com/tpu` on pods so; everything that Kubernetes switches on itself stays on."""


@contextmanager
def whole_plane(folder: Path, kuberay: str, heartbeats: bool = True) -> Iterator[ControlPlane]:
    """Start it below `folder` in this network namespace, at fixed ports of the bridge.

    Without `heartbeats` no node is given up that says nothing.

    Raises:
        ControlPlaneError: a part did not come up, or ended before it was told to.
    """
    folder.mkdir(parents=True)
    token = secrets.token_urlsafe(24)
    plane = ControlPlane(f"https://{GATEWAY}:{PORT}", folder / "certificates" / "apiserver.crt", token, kuberay)
    servers: list[Server] = []
    try:
        servers.append(start_etcd(folder, STORE, "http://127.0.0.1:2380"))
        servers.append(start_api_server(plane, folder))
        wait_until_ready(plane, servers)
        login = folder / "kubeconfig.json"
        login.write_text(json.dumps(plane.kubeconfig))
        servers.append(_start_controllers(plane, folder, login, heartbeats))
        servers.append(Server.start(kube_scheduler(), folder, {**_alone(login), "authentication-kubeconfig": login}))
        yield plane
        if dead := [server.dead for server in servers if server.dead]:
            raise ControlPlaneError("\n".join(dead))
    finally:
        for server in reversed(servers):
            server.end()


def start_api_server(plane: ControlPlane, folder: Path) -> Server:
    """Start the API server; also again, over the same store, after it was away."""
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{plane.token},admin,admin,system:masters\n")
    key = plane.ca_file.with_suffix(".key")
    flags: dict[str, str | Path] = {
        "etcd-servers": STORE,
        "secure-port": str(PORT),
        "bind-address": GATEWAY,
        "advertise-address": GATEWAY,
        "cert-dir": plane.ca_file.parent,
        "token-auth-file": tokens,
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-cluster-ip-range": SERVICES,
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "enable-admission-plugins": START_ADMISSION,
        "kubelet-preferred-address-types": "InternalIP",
    }
    return Server.start(kube_apiserver(), folder, flags)


def _start_controllers(plane: ControlPlane, folder: Path, login: Path, heartbeats: bool) -> Server:
    flags = {
        "controllers": "*" if heartbeats else "*,-node-lifecycle-controller",
        **_alone(login),
        "service-account-private-key-file": plane.ca_file.with_suffix(".key"),
        "root-ca-file": plane.ca_file,
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }
    return Server.start(kube_controller_manager(), folder, flags)


def _alone(login: Path) -> dict[str, str | Path]:
    """Nobody else does the same, and nobody asks it anything."""
    return {"kubeconfig": login, "leader-elect": "false", "secure-port": "0"}
