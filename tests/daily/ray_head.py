"""A real Ray head whose dashboard an API server can reach, with token authentication."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from infra.platforms.local.ports import pick
from tests.checkout import ROOT
from tests.rig.kube.kuberay import own_address

START_S = 180.0


@dataclass(frozen=True)
class RayHead:
    port: int
    token: str


@contextmanager
def ray_head(temp: Path) -> Iterator[RayHead]:
    """Run it until the block ends. `temp` is short: there are sockets in it."""
    address, token = own_address(), secrets.token_hex(16)
    gcs, dashboard, agent, client = pick(4)
    command = [
        *(str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", "--disable-usage-stats"),
        *(
            "--num-cpus=2",
            "--object-store-memory=100000000",
            "--min-worker-port=0",
            "--max-worker-port=0",
            "--dashboard-host=0.0.0.0",
            f"--node-ip-address={address}",
        ),
        *(f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}"),
        *(f"--dashboard-agent-listen-port={agent}", f"--temp-dir={temp}"),
    ]
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_memory_monitor_refresh_ms": "0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    with (temp.parent / "head.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(f"http://{address}:{dashboard}/api/version", token, process, temp.parent / "head.log")
        yield RayHead(dashboard, token)
    finally:
        started = [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
        process.kill()
        process.wait()
        for child in started:
            if child.is_running():
                child.kill()
        psutil.wait_procs(started, timeout=30)


def _wait(url: str, token: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        try:
            headers = {"Authorization": f"Bearer {token}"}
            if httpx.get(url, headers=headers, trust_env=False, timeout=5).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
