"""An emulated Ray cluster for these tests: slices of several shapes, and jobs run on them as their own processes."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from workloads.spec.job import JobSpec
from workloads.spec.launch import JobLaunch
from workloads.spec.slices import Slice

RUN_LIMIT_S = 400.0
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


def start_cluster(pools: dict[str, Slice]) -> Cluster:
    """A head without TPU, and one slice for each pool."""
    cluster = Cluster()
    cluster.add_node(num_cpus=4, include_dashboard=True)
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
        for line in self.process.stdout:
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
