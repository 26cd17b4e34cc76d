"""All hosts of one replica's slice: reserved, started, driven in lockstep, and given back together."""

import asyncio
import logging
import time
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from workloads.reserve import ReservedSlice, reserve_slice
from workloads.serve.engine import Emitted
from workloads.serve.host import Booted, Host, Identity, WrongHost
from workloads.serve.loop import Command
from workloads.spec import ServiceLaunch

logger = logging.getLogger("ray.serve")

BOOT_TRIES = 2
"""A host that dies while it boots is worth a second slice; everything else that fails would fail again."""


class HostsDisagree(RuntimeError):
    """Two hosts of one slice gave different tokens for the same step."""


class SliceHosts:
    """The hosts by worker id. Made by `start`; `release` frees everything."""

    def __init__(self, reserved: ReservedSlice) -> None:
        self.reserved = reserved
        self.booted: list[Booted] = []
        slice = reserved.slice
        # One group of calls for the engine, one thread wide, and one for pings, which must not wait for a step.
        actor: Any = ray.remote(  # type: ignore[call-overload]
            num_cpus=1, resources={"TPU": slice.chips_per_host}, max_restarts=0, concurrency_groups={"control": 1}
        )(Host)
        self._hosts: list[Any] = [
            actor.options(
                scheduling_strategy=PlacementGroupSchedulingStrategy(reserved.group, placement_group_bundle_index=index)
            ).remote()
            for index in range(slice.hosts)
        ]

    @classmethod
    def start(cls, launch: ServiceLaunch, engine: str) -> "SliceHosts":
        """Reserve a slice, boot the engine on every host, compile. Whatever fails, nothing stays taken. Blocks.

        Raises:
            SliceUnavailable: no slice of the pool became free within `reserve_timeout_s`.
            WrongHost: the hosts are not one whole slice with its chips.
            TimeoutError: booting took longer than `ready_timeout_s`.
            RayActorError: a host process died, in every try.
        """
        for tries_left in reversed(range(BOOT_TRIES)):
            try:
                return cls._start_once(launch, engine)
            except RayActorError as error:
                if not tries_left:
                    raise
                logger.warning("a host died while it booted, one more try: %s", error)
        raise AssertionError("BOOT_TRIES is at least 1")

    @classmethod
    def _start_once(cls, launch: ServiceLaunch, engine: str) -> "SliceHosts":
        service = launch.service
        started = time.monotonic()
        reserved = reserve_slice(
            launch.slice, service.pool, service.reserve_timeout_s, holder=f"service {service.name}"
        )
        logger.info("reserved slice %s in %.1f s", reserved.name, time.monotonic() - started)
        hosts = None
        try:
            hosts = cls(reserved)
            hosts._boot(launch, engine)
        except BaseException:
            if hosts is None:
                reserved.release()
            else:
                hosts.release()
            raise
        return hosts

    async def advance(self, step: int, commands: tuple[Command, ...]) -> list[Emitted]:
        """One step on all hosts. Raises what the first failing host raises; HostsDisagree when tokens differ."""
        results: list[list[Emitted]] = await asyncio.gather(
            *(host.advance.remote(step, commands) for host in self._hosts)
        )
        first = _tokens(results[0])
        for worker_id, other in enumerate(results):
            if _tokens(other) != first:
                raise HostsDisagree(f"step {step}: worker 0 gave {first}, worker {worker_id} gave {_tokens(other)}")
        return results[0]

    async def ping(self) -> None:
        """Return when every host has answered."""
        await asyncio.gather(*(host.ping.options(concurrency_group="control").remote() for host in self._hosts))

    def release(self) -> None:
        """End the host processes and give the slice back."""
        for host in self._hosts:
            ray.kill(host)
        self.reserved.release()

    def _boot(self, launch: ServiceLaunch, engine: str) -> None:
        service, slice = launch.service, launch.slice
        deadline = time.monotonic() + service.ready_timeout_s
        found: list[Identity] = self._all([host.identify.remote() for host in self._hosts], deadline, "start")
        self._check(found)
        order = sorted(range(slice.hosts), key=lambda index: found[index].worker_id)
        self._hosts = [self._hosts[index] for index in order]
        coordinator = found[order[0]].address
        self.booted = self._all(
            [
                host.boot.remote(slice, coordinator, rank, launch.model, launch.engine, engine)
                for rank, host in enumerate(self._hosts)
            ],
            deadline,
            "load the model and compile",
        )
        first = self.booted[0]
        logger.info(
            "slice %s is ready: %d %s devices on %d hosts, loaded in %.1f s, compiled in %.1f s",
            *(self.reserved.name, first.devices, first.platform, slice.hosts, first.load_s, first.warm_up_s),
        )

    def _check(self, found: list[Identity]) -> None:
        """A job on hosts of two slices runs on CPUs and hangs on TPUs, so it is looked at here, not there."""
        names = {one.slice_name for one in found}
        worker_ids = sorted(one.worker_id for one in found)
        if names != {self.reserved.name} or worker_ids != list(range(self.reserved.slice.hosts)):
            raise WrongHost(
                f"wanted: the {self.reserved.slice.hosts} hosts of slice {self.reserved.name}; "
                f"found: worker ids {worker_ids} of {', '.join(sorted(names))}"
            )

    @staticmethod
    def _all(refs: list[Any], deadline: float, what: str) -> list[Any]:
        """The results of all hosts, or the error of the first that fails: the others may be waiting for it for ever."""
        waiting = list(refs)
        while waiting:
            done, waiting = ray.wait(waiting, timeout=max(0.1, deadline - time.monotonic()))
            if not done:
                raise TimeoutError(f"{len(waiting)} of {len(refs)} hosts did not {what} before the deadline")
            ray.get(done)
        return list(ray.get(refs))


def _tokens(emitted: list[Emitted]) -> list[tuple[str, int | None, str | None]]:
    return [(one.request_id, one.token, one.finish_reason) for one in emitted]
