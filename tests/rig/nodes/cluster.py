"""A whole GKE cluster on this machine, in which pods run: everything but Google's own APIs is the real thing."""

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.rig.kube.control_plane import ControlPlane, Server
from tests.rig.kube.parts import kuberay_operator
from tests.rig.nodes.bucket_driver import csi_driver
from tests.rig.nodes.fleet import Fleet
from tests.rig.nodes.network import GATEWAY, RESOLV_CONF, lower_bridge, raise_bridge, start_names, start_proxy
from tests.rig.nodes.plane import whole_plane
from tests.rig.webhook.registered import webhook
from tests.rig.webhook.server import WebhookServer

PROJECT = "tpu-ray-test"
INSIDE = "TPU_RAY_CLUSTER_NAMESPACE"
"""Set by scripts/cluster.sh in the namespaces that it makes."""


@dataclass
class Cluster:
    """A cluster that runs.

    Attributes:
        login: kubeconfig of an administrator.
        operator: KubeRay's.
    """

    folder: Path
    plane: ControlPlane
    login: Path
    fleet: Fleet
    webhook: WebhookServer
    operator: Server

    def restart_operator(self) -> None:
        """End KubeRay's operator and start it again, as GKE does when it brings another release."""
        self.operator.end()
        self.operator = _start_operator(self.plane, self.login, self.folder)


@contextmanager
def cluster(folder: Path, kuberay: str, images: Sequence[str], heartbeats: bool = True) -> Iterator[Cluster]:
    """Start one below `folder`, without nodes; `images` are the tags that every node's registry has.

    Without `heartbeats` nodes are believed without a machine that speaks for them.

    It needs network, mount and process namespaces of its own: `scripts/cluster.sh`.
    """
    assert os.environ.get(INSIDE), "a cluster needs namespaces of its own: `make test-cluster`"
    folder.mkdir(parents=True)
    buckets = folder / "buckets"
    buckets.mkdir()
    with ExitStack() as parts:
        _own_machine(folder, parts)
        plane = parts.enter_context(whole_plane(folder / "plane", kuberay, heartbeats))
        login = folder / "plane" / "kubeconfig.json"
        for server in (start_proxy(plane, login, folder), start_names(login, folder)):
            parts.callback(server.end)
        plane.take_kuberay()
        with plane.client() as client:
            client.post("/apis/storage.k8s.io/v1/csidrivers", json=csi_driver(PROJECT)).raise_for_status()
        decider = parts.enter_context(webhook(plane, GATEWAY))
        fleet = Fleet(folder / "machines", f"tpu-ray-{secrets.token_hex(4)}", login, images, buckets)
        parts.callback(fleet.scrap)
        running = Cluster(folder, plane, login, fleet, decider, _start_operator(plane, login, folder))
        parts.callback(lambda: running.operator.end())
        yield running


def _own_machine(folder: Path, parts: ExitStack) -> None:
    """What this machine's namespaces need once: a bridge, and the cluster's names for those who ask from here."""
    raise_bridge()
    parts.callback(lower_bridge)
    names = folder / "resolv.conf"
    names.write_text(RESOLV_CONF)
    # The kubelet and containerd write at some fixed places: what they leave there is left in the folder.
    for place in ("/var/lib", "/var/log"):
        layers = [folder / place[1:].replace("/", "-") / part for part in ("written", "work")]
        for layer in layers:
            layer.mkdir(parents=True)
        options = f"lowerdir={place},upperdir={layers[0]},workdir={layers[1]}"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", place], check=True)
        parts.callback(subprocess.run, ["umount", "--lazy", place], check=True)
    for mount in (["--bind", str(names), "/etc/resolv.conf"], ["-t", "tmpfs", "run", "/run"]):
        subprocess.run(["mount", *mount], check=True)
        parts.callback(subprocess.run, ["umount", "--lazy", mount[-1]], check=True)


def _start_operator(plane: ControlPlane, login: Path, folder: Path) -> Server:
    log = folder / "kuberay.log"
    command = [
        str(kuberay_operator(plane.kuberay)),
        "--metrics-addr=127.0.0.1:9001",
        "--health-probe-bind-address=127.0.0.1:9002",
        "--enable-leader-election=false",
    ]
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            env={**os.environ, "KUBECONFIG": str(login)},
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
        )
    return Server("ray-operator", process, log)
