"""The Serve application of one service. No process that imports this imports jax: that happens in the host actors only.

Import path for Serve: `workloads.serve.app:build`, with a ServiceLaunch as JSON for its arguments.
"""

import asyncio
import hashlib
import importlib.metadata
import logging
import time
from typing import Any

from fastapi import FastAPI
from ray import serve

from workloads.models.source import resolve
from workloads.models.tokenizer import Tokenizer
from workloads.serve.host import JAX_ENGINE
from workloads.serve.http import Served, make_app
from workloads.serve.loop import EngineLoop
from workloads.serve.slice_hosts import SliceHosts
from workloads.spec import ServiceLaunch
from workloads.spec.decoder import ModelError
from workloads.versions import check_versions

logger = logging.getLogger("ray.serve")

WAITING_PER_SLOT = 16
"""Requests that may wait for each one that runs; more get 429."""
SPARE_CALLS = 64
"""Calls beyond those that Serve passes on, so that /health and refusals do not queue behind full slots."""
STEP_TIMEOUT_S = 120.0
"""All shapes are compiled before ready, so a step that takes this long hangs."""
HEALTH_PERIOD_S = 3.0
PING_TIMEOUT_S = 20.0
"""Long enough for a host that is busy in a step; a dead one is noticed at once."""
CONSTRUCTOR_TRIES = 1
"""A wrong model path stays wrong, and one wait for a slice is final. The replica itself retries a host lost at boot."""


@serve.ingress()
class Replica:
    """One copy of the model: one slice, one engine loop, one HTTP application."""

    async def __init__(self, launch: ServiceLaunch, engine: str) -> None:  # type: ignore[misc]  # Serve awaits it
        self._hosts: SliceHosts | None = None
        self._loop: EngineLoop | None = None
        # Image and model are looked at first: what is wrong with them must not cost a slice.
        check_versions(launch.versions)
        tokenizer = await asyncio.to_thread(_tokenizer, launch)
        self._hosts = await asyncio.to_thread(SliceHosts.start, launch, engine)
        self._loop = EngineLoop(self._hosts, most_open(launch), STEP_TIMEOUT_S)
        self._served = Served(
            name=launch.model_name,
            created=int(time.time()),
            fingerprint=fingerprint(launch),
            mark=launch.mark,
            context=launch.engine.context,
            tokenizer=tokenizer,
            loop=self._loop,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        return make_app(self._served)

    async def check_health(self) -> None:
        """Called by Serve. Raises when the loop or a host is dead; after three times Serve replaces the replica."""
        assert self._loop is not None
        await self._loop.check(PING_TIMEOUT_S)

    async def __del__(self) -> None:
        if self._loop is not None:
            await self._loop.close()
        if self._hosts is not None:
            await asyncio.to_thread(self._hosts.release)


def build(args: dict[str, Any]) -> serve.Application:
    """The application that Serve deploys; `args` is a ServiceLaunch as JSON."""
    return application(ServiceLaunch.model_validate(args), JAX_ENGINE)


def application(launch: ServiceLaunch, engine: str) -> serve.Application:
    """The same with any engine, named as `module:class`."""
    deployment: Any = serve.deployment(
        Replica,
        name="Replica",
        num_replicas=launch.service.replicas.min,
        max_ongoing_requests=most_open(launch) + SPARE_CALLS,
        # The replica itself computes nothing; the hosts' processes have the CPUs and the chips.
        ray_actor_options={"num_cpus": 0},
        max_constructor_retry_count=CONSTRUCTOR_TRIES,
        health_check_period_s=HEALTH_PERIOD_S,
        health_check_timeout_s=PING_TIMEOUT_S + 10,
        graceful_shutdown_wait_loop_s=1.0,
        graceful_shutdown_timeout_s=30.0,
    )
    bound: serve.Application = deployment.bind(launch, engine)
    return bound


def most_open(launch: ServiceLaunch) -> int:
    """Requests that one replica lets in, running and waiting."""
    return launch.engine.max_slots * (1 + WAITING_PER_SLOT)


def _tokenizer(launch: ServiceLaunch) -> Tokenizer:
    """The model's tokenizer.

    Raises:
        ModelError: there is no such model, or its context is shorter than what the service asks for.
    """
    tokenizer = Tokenizer(resolve(launch.model).folder())
    wanted = launch.engine.context
    if tokenizer.context and wanted > tokenizer.context:
        raise ModelError(
            f"engine.context {wanted} of service {launch.service.name}",
            f"the model was made for {tokenizer.context} tokens",
            f"Allowed is up to {tokenizer.context}",
        )
    return tokenizer


def fingerprint(launch: ServiceLaunch) -> str:
    """Names what an answer depends on besides the request."""
    version = importlib.metadata.version("tpu-ray")
    parts = (version, launch.model, launch.model_version, launch.slice.model_dump_json(), launch.engine)
    return "fp_" + hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
