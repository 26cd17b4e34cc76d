"""An emulated Ray cluster for these tests: slices of several shapes, and jobs run on them as their own processes."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workloads.spec.job import JobSpec
from workloads.spec.launch import JobLaunch
from workloads.spec.slices import Slice

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

RUN_LIMIT_S = 1800.0
"""A run that takes longer is ended: it hangs."""


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """`os.environ` with these values in it. A Ray node reads its labels from the process that starts it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def host_environment(shape: Slice, name: str, worker_id: int) -> dict[str, str]:
    """What a TPU host of the slice would find in its environment, and CPU devices in the place of chips."""
    return {
        "TPU_NAME": name,
        "TPU_WORKER_ID": str(worker_id),
        "TPU_ACCELERATOR_TYPE": shape.ray_pod_type,
        "TPU_TOPOLOGY": shape.topology,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={shape.devices_per_host}",
    }


@contextmanager
def running_cluster(pools: dict[str, Slice]) -> Iterator[str]:
    """The address of a cluster that lives in a process of its own, which ends it when its input is closed."""
    process, address = start_process(pools)
    for _ in range(4):
        if address:
            break
        # Ray gives a raylet 30 s to come up and has no key for it; a busy machine may need another try.
        end_process(process)
        process, address = start_process(pools)
    try:
        assert address, "no cluster"
        yield address
    finally:
        end_process(process)


def start_process(pools: dict[str, Slice]) -> "tuple[subprocess.Popen[str], str | None]":
    """The cluster's process, and its address if it came up."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.train.emulated", json.dumps({p: s.model_dump() for p, s in pools.items()})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, next((line.split()[1] for line in process.stdout if line.startswith("ADDRESS ")), None)


def end_process(process: "subprocess.Popen[str]") -> None:
    """End a cluster's process, and with it the cluster."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def main() -> None:
    """Start the cluster that the argument describes, say its address, end it when the input is closed."""
    pools = {pool: Slice.model_validate(shape) for pool, shape in json.loads(sys.argv[1]).items()}
    cluster = start_cluster(pools)
    try:
        print(f"ADDRESS {cluster.address}", flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


def start_cluster(pools: dict[str, Slice]) -> "Cluster":
    """A head without TPU, and one slice for each pool."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    cluster.add_node(num_cpus=4, include_dashboard=True, dashboard_port=free_port())
    place = 2
    for pool, shape in pools.items():
        for worker_id in range(shape.hosts):
            values = host_environment(shape, f"{pool}-0", worker_id)
            with environment(values):
                cluster.add_node(
                    num_cpus=2,
                    resources={"TPU": shape.chips_per_host, f"pool:{pool}": 1000},
                    env_vars=values,
                    node_ip_address=f"127.0.0.{place}",
                )
            place += 1
    return cluster


def free_port() -> int:
    """A port that nobody listens on. Ray's default one may be another cluster's."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Driver:
    """A running `python -m workloads.train`, and what it has printed so far."""

    launch: JobLaunch
    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as shown:
            for line in shown:
                self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, pattern: str, limit_s: float = RUN_LIMIT_S) -> re.Match[str]:
        """The first match of a pattern in the output."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            found = re.search(pattern, self.output)
            if found:
                return found
            if self.process.poll() is not None:
                self._reader.join(10)
                found = re.search(pattern, self.output)
                if found:
                    return found
                break
            time.sleep(0.1)
        raise AssertionError(f"no {pattern!r} in the output:\n{self.output}")

    def finish(self, limit_s: float = RUN_LIMIT_S) -> int:
        """The exit code."""
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the run did not end in {limit_s} s:\n{self.output}") from None
        self._reader.join(10)
        return code


def start_run(address: str, job: JobSpec, shape: Slice, storage: Path) -> Driver:
    """Start a job's driver against the cluster."""
    launch = JobLaunch(job=job, slice=shape, storage=str(storage))
    process = subprocess.Popen(
        [sys.executable, "-m", "workloads.train", launch.model_dump_json()],
        env={**os.environ, "RAY_ADDRESS": address, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Driver(launch, process)


def metrics(launch: JobLaunch) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl."""
    path = Path(launch.storage) / launch.run_name / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main()
