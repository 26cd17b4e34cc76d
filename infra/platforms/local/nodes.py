"""Environment and command of every Ray node of a local cluster. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.platforms.local.folders import Folders
from infra.platforms.local.memory import HEAD_STORE_MIB, HOST_STORE_MIB
from infra.platforms.local.processes import MARKER
from infra.platforms.local.spec import EmulatedHost
from workloads.spec.pools import POOL_UNITS, pool_resource

HEAD = "head"
HEAD_CPUS = 6
"""For Serve's controller and replicas' own processes, the jobs' drivers and Ray Data's tasks."""
HOST_CPUS = 2

KEPT_OF_OURS = ("TPU_RAY_HOME", "TPU_RAY_CACHE")
DROPPED = ("PULUMI_", "RAY_", "TPU_", "JAX_", "XLA_", "VIRTUAL_ENV", "PYTHONWARNINGS")
"""What must not reach the workloads: secrets of the deployment, and settings that would contradict the emulation."""


@dataclass(frozen=True)
class NodePorts:
    """Ports of one node that Ray would otherwise put at a fixed place."""

    agent_http: int
    gcs: int = 0
    client: int = 0


def loopback(digest: int, place: int) -> str:
    """Address of node `place` (0 is the head) of a cluster: each has its own, below 127.

    Loopback addresses outlive a change of network, reach no other machine, and make Ray count hosts as on GKE.
    127.0.0.1 itself is left alone: Ray replaces it by the machine's outer address.
    """
    if not 0 <= place < 254 * 4:
        raise ValueError(f"a local cluster has at most {254 * 4} nodes")
    second, third = 64 + digest % 32, digest // 32 % 64
    return f"127.{second}.{third * 4 + place // 254}.{place % 254 + 1}"


def place_of(address: str) -> int:
    """The node's place, from its `loopback` address."""
    _, _, third, fourth = map(int, address.split("."))
    return third % 4 * 254 + fourth - 1


def node_temp(folders: Folders, place: int) -> Path:
    """A node's own temp folder: several nodes on one machine would overwrite each other's address file in one."""
    return folders.ray_temp / str(place)


def inherited(outer: Mapping[str, str]) -> dict[str, str]:
    """What a node takes over from the environment that starts it."""
    return {
        key: value
        for key, value in outer.items()
        if key in KEPT_OF_OURS or not any(key.startswith(prefix) for prefix in DROPPED)
    }


def node_environment(
    outer: Mapping[str, str], folders: Folders, session: str, bin_folder: Path, host: EmulatedHost | None
) -> dict[str, str]:
    """Environment of a node: what GKE's webhook and Ray's operator would inject, and nothing of the deployment's own.

    `host` is None for the head, which has no TPU.
    """
    kept = inherited(outer)
    path = kept.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    own = {
        # A job's command is `python -m ...`: it must find the interpreter that Ray runs on.
        "PATH": f"{bin_folder}:{path}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(folders.token_file),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Many nodes share one machine's memory: how full it is says nothing about one of them.
        "RAY_memory_monitor_refresh_ms": "0",
        # Otherwise each driver makes every node start as many idle workers as it has CPUs.
        "RAY_prestart_worker_first_driver": "0",
        "JAX_PLATFORMS": "cpu",
        MARKER: session,
    }
    if host is not None:
        own |= {
            "TPU_NAME": host.slice_name,
            "TPU_WORKER_ID": str(host.worker_id),
            "TPU_ACCELERATOR_TYPE": host.slice.ray_pod_type,
            "TPU_TOPOLOGY": host.slice.topology,
            "TPU_RAY_POOL": host.pool,
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={host.slice.devices_per_host}",
        }
    return kept | own


def head_command(ray: Path, folders: Folders, dashboard_port: int, ports: NodePorts) -> list[str]:
    """`ray start --head` for a node without a TPU. It stays in the foreground of its own session."""
    return [
        *_common(ray, folders, 0, ports, HEAD_CPUS, HEAD_STORE_MIB),
        "--head",
        f"--port={ports.gcs}",
        f"--ray-client-server-port={ports.client}",
        "--include-dashboard=true",
        "--dashboard-host=127.0.0.1",
        f"--dashboard-port={dashboard_port}",
    ]


def host_command(
    ray: Path, folders: Folders, host: EmulatedHost, place: int, ports: NodePorts, gcs_address: str
) -> list[str]:
    """`ray start` for one emulated host, which is node `place` of the cluster."""
    resources = {"TPU": host.slice.chips_per_host, pool_resource(host.pool): POOL_UNITS}
    return [
        *_common(ray, folders, place, ports, HOST_CPUS, HOST_STORE_MIB),
        f"--address={gcs_address}",
        f"--resources={json.dumps(resources)}",
    ]


def _common(ray: Path, folders: Folders, place: int, ports: NodePorts, cpus: int, store_mib: int) -> list[str]:
    return [
        str(ray),
        "start",
        "--block",
        "--disable-usage-stats",
        "--log-color=false",
        f"--node-ip-address={loopback(folders.digest, place)}",
        f"--temp-dir={node_temp(folders, place)}",
        f"--num-cpus={cpus}",
        f"--object-store-memory={store_mib * 2**20}",
        f"--dashboard-agent-listen-port={ports.agent_http}",
        "--min-worker-port=0",
        "--max-worker-port=0",
    ]
