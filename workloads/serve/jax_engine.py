"""The bundled engine: continuous batching of a Llama-family model over the devices of a slice."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from workloads.models.hf import HfFolder
from workloads.models.load import load_hf
from workloads.models.sharding import mesh_for
from workloads.models.source import ModelFiles, resolve
from workloads.serve.engine import Emitted, EngineStats, Sampling
from workloads.serve.programs import Programs, compiles
from workloads.serve.schedule import Prefill, Request, Schedule
from workloads.spec.decoder import ModelError
from workloads.spec.service import EngineSpec


class JaxEngine:
    """An `Engine`. Made and driven alike in every process of the slice, after `jax.distributed` where several are."""

    def __init__(
        self,
        model: str | ModelFiles,
        spec: EngineSpec,
        devices: Sequence[jax.Device] | None = None,
        dtype: jax.typing.DTypeLike | None = None,
    ) -> None:
        """Load the weights, each device its shard, and allocate the KV cache.

        `devices` default to all of all processes; `dtype` of weights, cache and arithmetic to bfloat16 on accelerators
        and float32 on CPU, which has no fast bfloat16.

        Raises:
            ModelError: there is no such model, or its context is shorter than `spec.context`.
        """
        folder = (resolve(model) if isinstance(model, str) else model).folder()
        with HfFolder(folder) as source:
            own = source.config
        if spec.context > own.context:
            raise ModelError(
                f"engine.context {spec.context}",
                f"the model was made for {own.context}",
                f"Allowed is up to {own.context}",
            )
        mesh = mesh_for(own, devices)
        if dtype is None:
            dtype = jnp.float32 if mesh.devices.flat[0].platform == "cpu" else jnp.bfloat16
        self.config, params = load_hf(folder, mesh, dtype, replicate_kv=True)
        self.mesh = mesh
        self._slots = spec.max_slots
        self._schedule = Schedule(spec.max_slots, spec.context, spec.prefill_buckets)
        self._programs = Programs(
            self.config, params, mesh, spec.max_slots, spec.context, self._schedule.buckets, dtype
        )
        self._steps = 0
        self._cancelled: list[str] = []

    def warm_up(self) -> None:
        """Compile every shape. Until this is done, the first steps compile what they need."""
        self._programs.compile()

    def add(self, request_id: str, prompt: Sequence[int], sampling: Sampling) -> None:
        """Queue a request. Raises ValueError when it does not fit the context or its id is taken."""
        self._schedule.add(request_id, prompt, sampling)

    def cancel(self, request_id: str) -> None:
        """Free the request's slot at once; the next step reports its end."""
        if self._schedule.remove(request_id):
            self._cancelled.append(request_id)

    def step(self) -> list[Emitted]:
        """One chunk of a prompt, or one token for every running request; empty when idle or when a prompt goes on."""
        emitted = [Emitted(request_id, None, None, "cancelled") for request_id in self._cancelled]
        self._cancelled.clear()
        work = self._schedule.next()
        if work is None:
            return emitted
        self._steps += 1
        if isinstance(work, Prefill):
            tokens, logprobs = self._programs.prefill(work.tokens, work.start, work.bucket, work.request)
            return emitted + ([self._emit(work.request, tokens[0], logprobs[0])] if work.last else [])
        tokens, logprobs = self._programs.decode(work.requests)
        return emitted + [
            self._emit(request, tokens[request.slot], logprobs[request.slot]) for request in work.requests
        ]

    def _emit(self, request: Request, token: int, logprob: float) -> Emitted:
        reason = request.took(int(token))
        if reason is not None:
            self._schedule.remove(request.request_id)
        return Emitted(request.request_id, int(token), float(logprob), reason)

    def stats(self) -> EngineStats:
        """Counts of this moment; `compiles` are those of the whole process."""
        return EngineStats(self._schedule.running, self._schedule.waiting, self._slots, self._steps, compiles.count)
