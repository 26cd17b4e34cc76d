"""`python -m workloads.submitted JSON`: run somebody's command on every host of a slice, and end as it ends.

The command is started in the working directory that was uploaded, once per host, with all the host's chips. Besides the
host's own environment it finds

    TPU_RAY_HOST, TPU_RAY_HOSTS   its host's number and how many there are
    JAX_COORDINATOR_ADDRESS       where `jax.distributed.initialize` meets

This driver never imports jax.
"""

import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import ray
from pydantic import ValidationError
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from workloads.reserve import ReservedSlice, SliceUnavailable, reserve_slice
from workloads.spec.submitted import SubmittedLaunch

OK, FAILED, BAD = 0, 1, 2
PR_SET_PDEATHSIG = 1
OTHERS_S = 10.0
"""How long the other hosts may go on when one has failed: they may wait for it without end."""


class Host:
    """A Ray actor: the only one that has its host's chips."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def address(self) -> str:
        """`ip:port`, free at this moment."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"  # type: ignore[no-untyped-call]

    def run(self, command: tuple[str, ...], environment: dict[str, str]) -> Iterator[str | int]:
        """The lines that the command prints, and at last its exit code."""
        try:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=_end_with_parent,
            )
        except OSError as error:
            yield f"error: {command[0]}: {error.strerror}"
            yield 127
            return
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.rstrip("\n")
        code = self._process.wait()
        yield 128 - code if code < 0 else code


def _end_with_parent() -> None:
    """Nothing of a run stays on the chips when Ray ends this host's process without a word."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Running:
    """The hosts of a slice, each with its command."""

    def __init__(self, launch: SubmittedLaunch, reserved: ReservedSlice) -> None:
        self._launch, self._reserved = launch, reserved
        self._codes: dict[int, int] = {}
        self._changed = threading.Condition()
        actor: Any = ray.remote(num_cpus=1, resources={"TPU": launch.slice.chips_per_host}, max_restarts=0)(Host)
        self._hosts: list[Any] = [
            actor.options(
                scheduling_strategy=PlacementGroupSchedulingStrategy(reserved.group, placement_group_bundle_index=index)
            ).remote()
            for index in range(launch.slice.hosts)
        ]

    def wait(self) -> int:
        """Start the command everywhere, print what it prints, and give the first exit code that is not 0."""
        coordinator = ray.get(self._hosts[0].address.remote())
        for number in range(len(self._hosts)):
            threading.Thread(target=self._follow, args=(number, coordinator), daemon=True).start()
        first_failure: int | None = None
        until: float | None = None
        with self._changed:
            while len(self._codes) < len(self._hosts) and (until is None or time.monotonic() < until):
                self._changed.wait(1)
                failed = next((code for code in self._codes.values() if code), None)
                if failed is not None and first_failure is None:
                    first_failure, until = failed, time.monotonic() + OTHERS_S
            going = sorted(set(range(len(self._hosts))) - set(self._codes))
        if going:
            say(f"error: host {', '.join(map(str, going))} did not end within {OTHERS_S:g} s of the other's failure")
        return first_failure or OK

    def _follow(self, number: int, coordinator: str) -> None:
        hosts = len(self._hosts)
        where = f"[host {number}] " if hosts > 1 else ""
        environment = {
            "TPU_RAY_HOST": str(number),
            "TPU_RAY_HOSTS": str(hosts),
            "JAX_COORDINATOR_ADDRESS": coordinator,
        }
        code = FAILED
        try:
            told = self._hosts[number].run.options(num_returns="streaming").remote(self._launch.command, environment)
            for reference in told:
                said = ray.get(reference)
                if isinstance(said, int):
                    code = said
                else:
                    say(f"{where}{said}")
            if code:
                say(f"{where}error: the command ended with {code}")
        except RayActorError as error:
            say(f"{where}error: the host is lost: {error}")
        finally:
            with self._changed:
                self._codes[number] = code
                self._changed.notify_all()


def say(text: str) -> None:
    print(text, flush=True)


def run(launch: SubmittedLaunch) -> int:
    """Take a slice, run the command on it, give the slice back. The command's exit code; 1 where there was no slice."""
    end_after(launch)
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False, logging_level=logging.WARNING)
    try:
        shape = launch.slice
        say(f"waiting for a free {shape.generation} {shape.topology} slice of pool {launch.pool}")
        reserved = reserve_slice(shape, launch.pool, launch.reserve_timeout_s, holder=f"submitted {launch.name}")
        say(f"running on slice {reserved.name}, {shape.hosts} host{'s' if shape.hosts > 1 else ''}")
        try:
            return Running(launch, reserved).wait()
        finally:
            reserved.release()
    except SliceUnavailable as error:
        say(f"error: {error}")
        return FAILED
    finally:
        ray.shutdown()


def end_after(launch: SubmittedLaunch) -> None:
    """End this process, and with it what it started, when `timeout_s` is over."""

    def end() -> None:
        say(f"error: {launch.name} took longer than {launch.timeout_s} s (`--timeout`)")
        os._exit(FAILED)

    timer = threading.Timer(launch.timeout_s, end)
    timer.daemon = True
    timer.start()


def main(arguments: list[str]) -> int:
    """Gives the exit code."""
    try:
        launch = SubmittedLaunch.model_validate_json(arguments[0])
    except (IndexError, ValidationError) as error:
        say(f"error: one argument is wanted, a workloads.spec.submitted.SubmittedLaunch: {error}")
        return BAD
    return run(launch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
