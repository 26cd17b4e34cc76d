"""One emulated cluster for all slow tests of this folder, and the runs that several of them look at."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.train.emulated import Driver, running_cluster, start_run
from workloads.spec.job import JobSpec
from workloads.spec.slices import resolve_slice

POOLS = {
    "four": resolve_slice("v6e", "4x4"),
    # Two hosts of four chips, which Ray by itself takes for one host of eight.
    "two": resolve_slice("v6e", "2x4", "ct6e-standard-4t"),
    "one": resolve_slice("v6e", "2x2"),
}
SHORT_RUN: dict[str, Any] = {"steps": 24, "checkpoint_every": 8, "timeout_s": 1800}

Start = Callable[..., Driver]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Address of a cluster with one slice for each pool."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        with running_cluster(POOLS) as found:
            yield found


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="session")
def start(address: str, storage: Path) -> Iterator[Start]:
    """Starts the driver of a job; what still runs at the end is ended."""
    drivers: list[Driver] = []

    def start_job(pool: str, name: str, **job: Any) -> Driver:
        shape = job.pop("slice", POOLS[pool])
        driver = start_run(address, JobSpec(name=name, pool=pool, **job), shape, storage)
        drivers.append(driver)
        return driver

    yield start_job
    for driver in drivers:
        if driver.process.poll() is None:
            driver.process.kill()
            driver.process.wait(10)


def finished(driver: Driver) -> Driver:
    assert driver.finish() == 0, driver.output
    return driver


@pytest.fixture(scope="session")
def wide_run(start: Start) -> Driver:
    """The short run on four hosts of four chips. tests/whole sees whether a job learns."""
    return finished(start("four", "wide", **SHORT_RUN))


@pytest.fixture(scope="session")
def calm_run(start: Start) -> Driver:
    """A short run on two hosts that nothing disturbs."""
    return finished(start("two", "calm", **SHORT_RUN))


@pytest.fixture(scope="session")
def killed_run(start: Start, calm_run: Driver) -> Driver:
    """The same run, one worker of which is killed after the first checkpoint."""
    driver = start("two", "killed", **SHORT_RUN)
    pid = int(driver.wait_for(r"process 1 on worker \d \(pid (\d+)\)").group(1))
    driver.wait_for("checkpoint of step 8 is complete")
    os.kill(pid, signal.SIGKILL)
    return finished(driver)


@pytest.fixture(scope="session")
def single_run(start: Start) -> Driver:
    """The first six steps on one host."""
    return finished(start("one", "single", **{**SHORT_RUN, "steps": 6}))


@pytest.fixture(scope="session")
def moved_run(start: Start, calm_run: Driver, storage: Path) -> Driver:
    """The short run as if it had died while it wrote its last checkpoint, gone on with on a smaller slice."""
    moved = storage / "moved-r1"
    shutil.copytree(storage / "calm-r1", moved, ignore=shutil.ignore_patterns("export"))
    last, before = moved / "checkpoints" / "00000024", moved / "checkpoints" / "00000016"
    shutil.rmtree(last)
    shutil.copytree(before, last)
    (last / "commit_success.txt").unlink()
    (last / "_CHECKPOINT_METADATA").unlink()
    shutil.rmtree(last / "d")
    return finished(start("one", "moved", **SHORT_RUN))
