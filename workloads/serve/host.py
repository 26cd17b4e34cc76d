"""One host of a replica's slice: the only process that touches its chips. jax is imported here, inside the methods."""

import importlib
import os
import socket
import time
from dataclasses import dataclass
from typing import Any

from workloads.serve.engine import Emitted, Engine, EngineStats
from workloads.serve.loop import Add, Command
from workloads.spec import EngineSpec, Slice

JAX_ENGINE = "workloads.serve.jax_engine:JaxEngine"
"""The bundled engine, as `module:class`. A class is called with the model and the EngineSpec, then `warm_up()` is."""


class WrongHost(RuntimeError):
    """The process is not on the chips that it was promised. The text says what was wanted and what is there."""


@dataclass(frozen=True)
class Identity:
    """Where a host process is, as Ray labels its node."""

    slice_name: str
    worker_id: int
    node_id: str
    address: str
    """`ip:port`, free at this moment: where jax's coordinator may listen."""


@dataclass(frozen=True)
class Booted:
    """What a host found when it was ready."""

    process_index: int
    devices: int
    """Of the whole slice."""
    platform: str
    stats: EngineStats
    load_s: float
    warm_up_s: float


class Host:
    """A Ray actor: one per host, with all its chips. Calls come one at a time, except `ping`."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._step = 0

    def identify(self) -> Identity:
        """Which host of which slice this is."""
        import ray

        # The annotation of Ray 2.60 says lists; they are plain values.
        labels: Any = ray.get_runtime_context().get_node_labels()
        ip = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        return Identity(
            labels["ray.io/tpu-slice-name"],
            int(labels["ray.io/tpu-worker-id"]),
            ray.get_runtime_context().get_node_id(),
            f"{ip}:{port}",
        )

    def boot(self, slice: Slice, coordinator: str, rank: int, model: str, spec: EngineSpec, engine: str) -> Booted:
        """Join the slice's other hosts, load the model, compile every shape.

        Args:
            slice: what this host is a part of.
            coordinator: `ip:port` on the host with worker id 0.
            rank: this host's worker id.
            model: what the engine loads.
            spec: the engine's sizes.
            engine: `module:class`.

        Raises:
            WrongHost: the chips are not those of the slice.
        """
        import jax

        if slice.multi_host:
            jax.distributed.initialize(coordinator, num_processes=slice.hosts, process_id=rank)
        self._check_devices(slice)
        started = time.monotonic()
        module, _, name = engine.partition(":")
        made: Any = getattr(importlib.import_module(module), name)(model, spec)
        loaded = time.monotonic()
        made.warm_up()
        self._engine = made
        return Booted(
            jax.process_index(),
            jax.device_count(),
            jax.default_backend(),
            self.stats(),
            loaded - started,
            time.monotonic() - loaded,
        )

    def advance(self, step: int, commands: tuple[Command, ...]) -> list[Emitted]:
        """Apply the commands, then run one engine step. Every host gets the same calls in the same order."""
        assert self._engine is not None, "boot comes first"
        self._step += 1
        if step != self._step:
            raise RuntimeError(f"host is at step {self._step}, the replica at step {step}: a call was lost")
        for command in commands:
            if isinstance(command, Add):
                self._engine.add(command.request_id, command.prompt, command.sampling)
            else:
                self._engine.cancel(command.request_id)
        return self._engine.step()

    def stats(self) -> EngineStats:
        """The engine's counts."""
        assert self._engine is not None, "boot comes first"
        return self._engine.stats()

    def ping(self) -> int:
        """The step that this host is at. Answers also while a step runs."""
        return self._step

    @staticmethod
    def _check_devices(slice: Slice) -> None:
        import jax

        backend = jax.default_backend()
        # An emulated host says so itself; on any other, jax on the CPU means that the chips were not to be had.
        if os.environ.get("JAX_PLATFORMS") != "cpu" and backend != "tpu":
            raise WrongHost(
                f"wanted: {slice.chips_per_host} TPU chips for this process; found: jax runs on {backend}. next: "
                "look for another process that holds the chips, and check that libtpu is installed in the image"
            )
        found = (jax.process_count(), jax.local_device_count(), jax.device_count())
        if found != (slice.hosts, slice.devices_per_host, slice.devices):
            raise WrongHost(
                f"wanted for {slice.generation} {slice.topology}: {slice.hosts} processes with "
                f"{slice.devices_per_host} devices each, {slice.devices} in all; found: {found[0]} processes, "
                f"{found[1]} devices here, {found[2]} in all"
            )
