"""The network of a cluster on one machine: a bridge that all pods of all nodes are on, Services and their names.

It is made inside a network namespace of its own and ends with it.
"""

import json
import subprocess
from pathlib import Path

from tests.rig.kube.control_plane import ControlPlane, Server
from tests.rig.kube.parts import coredns, kube_proxy

BRIDGE = "pods"
GATEWAY = "10.88.0.1"
PODS = "10.88.0.0/16"
FIRST_POD, LAST_POD = "10.88.1.1", "10.88.99.254"
SERVICES = "10.96.0.0/16"
DOMAIN = "cluster.local"
RESOLV_CONF = f"nameserver {GATEWAY}\nsearch svc.{DOMAIN} {DOMAIN}\noptions ndots:5\n"


def raise_bridge() -> None:
    """Make the bridge, with the address that the API server and the name server listen at."""
    for command in (
        "ip link set lo up",
        f"ip link add {BRIDGE} type bridge",
        f"ip address add {GATEWAY}/16 dev {BRIDGE}",
        f"ip link set {BRIDGE} up",
        # A Service's address is translated only after a way to it was found.
        f"ip route add {SERVICES} dev {BRIDGE}",
    ):
        subprocess.run(command.split(), check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Services are translated by rules that see what crosses a bridge only when they are told to.
    bridged = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if bridged.exists():
        bridged.write_text("1")


def lower_bridge() -> None:
    """Take it away, with the rules of Services."""
    subprocess.run(["ip", "link", "delete", BRIDGE], check=True)
    for table in ("nat", "filter", "mangle"):
        for what in ("-F", "-X"):
            subprocess.run(["iptables", "-t", table, what], check=True)


def add_address(number: int) -> str:
    """An address of its own for a node, on the bridge."""
    address = f"10.88.{200 + number // 250}.{number % 250 + 1}"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", BRIDGE], check=True)
    return address


def drop_address(address: str) -> None:
    """Take a node's address away; what is sent there from now on is lost."""
    subprocess.run(["ip", "address", "del", f"{address}/32", "dev", BRIDGE], check=True)


def write_cni(folder: Path, leases: Path) -> None:
    """What containerd asks for a pod's address; all nodes share the `leases`.

    https://www.cni.dev/plugins/current/main/bridge/
    """
    folder.mkdir(parents=True, exist_ok=True)
    ranges = [[{"subnet": PODS, "rangeStart": FIRST_POD, "rangeEnd": LAST_POD, "gateway": GATEWAY}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "dataDir": str(leases), "routes": [{"dst": "0.0.0.0/0"}]},
    }
    written = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]}
    (folder / "10-pods.conflist").write_text(json.dumps(written))


def start_proxy(plane: ControlPlane, login: Path, folder: Path) -> Server:
    """Kubernetes' own kube-proxy: all nodes are one machine, so that one is enough."""
    config = folder / "kube-proxy.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "mode": "iptables",
                "clientConnection": {"kubeconfig": str(login)},
                "clusterCIDR": PODS,
                # Two pods on one bridge answer each other directly: without this a Service's answer comes from a
                # stranger.
                "iptables": {"masqueradeAll": True, "minSyncPeriod": "0s"},
                "conntrack": {"maxPerCore": 0},
                "hostnameOverride": "machine",
                "bindAddress": GATEWAY,
                "metricsBindAddress": "127.0.0.1:10249",
            }
        )
    )
    return Server.start(kube_proxy(), folder, {"config": config})


def start_names(login: Path, folder: Path) -> Server:
    """CoreDNS for the cluster's domain.

    https://coredns.io/plugins/kubernetes/
    """
    file = folder / "Corefile"
    file.write_text(
        f""".:53 {{
    bind {GATEWAY}
    errors
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {login}
        ttl 0
    }}
}}
"""
    )
    return Server.start(coredns(), folder, {"conf": file})
