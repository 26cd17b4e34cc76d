"""Rules about memory: a model, its KV cache and its training state must fit into the HBM of their slice's chips."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.model_size import SizeOf, served_size, size_here, trained_size
from infra.stack.problems import Problem
from infra.stack.rules_pools import Pool
from infra.stack.rules_services import pool_of
from infra.stack.translate import Entry
from workloads.spec import EngineSpec, JobSpec, ServiceSpec, Slice
from workloads.spec.decoder import LlamaConfig
from workloads.spec.fit import GIB, Fit, next_batch, serving_fit, smallest, tensor_degrees, training_fit
from workloads.spec.layout import mesh_shape

LEAST_CONTEXT = 16
"""The shortest context that a service may have."""


def fit_problems(
    platform: Entry[LocalPlatform | GkePlatform] | None,
    services: Sequence[Entry[ServiceSpec]],
    jobs: Sequence[Entry[JobSpec]],
    pools: Mapping[str, Pool],
    size_of: SizeOf = size_here,
) -> Iterator[Problem]:
    """Services and jobs that no chip of their slice can hold. Emulated slices have no HBM, so `local` is left alone.

    A model whose size `size_of` does not know is left alone too; the plan warns of it.
    """
    if platform is None or not isinstance(platform.spec, GkePlatform):
        return
    known = [job.spec for job in jobs if job.spec is not None and job.sound("name", "model")]
    for entry in services:
        pool = pool_of(entry, pools)
        if pool is None or pool.slice is None or entry.spec is None or not entry.sound("model", "engine"):
            continue
        if not isinstance(entry.spec.engine, EngineSpec):
            continue
        size = served_size(entry.spec.model, known, size_of)
        if isinstance(size, LlamaConfig):
            yield from _service(entry, entry.spec, entry.spec.engine, size, pool.name, pool.slice)
    for job in jobs:
        pool = pool_of(job, pools)
        if (
            pool is None
            or pool.slice is None
            or job.spec is None
            or not job.sound("model", "mesh", "data.global_batch")
        ):
            continue
        size = trained_size(job.spec)
        if isinstance(size, LlamaConfig):
            yield from _job(job, job.spec, size, pool.name, pool.slice)


def sum_of(fit: Fit) -> str:
    """`16.26 GiB = weights 14.96 + KV cache 0.50 + margin 0.80`: of one chip; parts that show as 0 are left out."""
    shown = {name: f"{size / GIB:.2f}" for name, size in {**fit.parts, "margin": fit.margin}.items()}
    parts = (f"{name.replace('kv_', 'KV ')} {size}" for name, size in shown.items() if size != "0.00")
    return f"{up(fit.needed)} GiB = {' + '.join(parts)}"


def up(size: int) -> str:
    """Bytes as GiB with two digits, never less than they are."""
    return f"{-(-100 * size // GIB) / 100:.2f}"


def _service(
    entry: Entry[ServiceSpec], spec: ServiceSpec, engine: EngineSpec, size: LlamaConfig, pool: str, on: Slice
) -> Iterator[Problem]:
    slots, context = engine.max_slots, engine.context

    def fit(shape: Slice = on, slots: int = slots, context: int = context) -> Fit:
        return serving_fit(size, slots, context, shape)

    if fit().holds:
        return
    holding = [_words(shape) for shape in smallest(lambda shape: fit(shape).holds)]
    data, tensor = mesh_shape(on.devices, size.heads)
    reason = _reason(f"max_slots {slots} and context {context}", fit(), on, data, tensor)
    asked: list[tuple[str, int, int, Callable[[int], bool]]] = [
        ("context", context, LEAST_CONTEXT, lambda less: fit(context=less).holds),
        ("max_slots", slots, 1, lambda less: fit(slots=less).holds),
    ]
    # The context of a job's model need not be written, and then reads as if it were.
    inherited = spec.model.startswith("job:") and context == size.context
    for name, value, least, holds in reversed(asked) if inherited else asked:
        most = _most(least, value, holds) if entry.wrote(f"engine.{name}") else None
        if most is not None:
            yield Problem(
                key=f"{entry.key}.engine.{name}",
                value=value,
                reason=f"{reason}; {_these(holding)}",
                allowed=(f"{least} to {most}",),
                nearest=most,
            )
            return
    yield _pool_too_small(f"{entry.key}.pool", pool, reason, holding, on)


def _job(entry: Entry[JobSpec], spec: JobSpec, size: LlamaConfig, pool: str, on: Slice) -> Iterator[Problem]:
    """Told where something smaller than another slice helps: a batch of fewer rows, else a larger tensor degree."""
    batch, tensor, data = spec.data.global_batch, spec.mesh.tensor, on.devices // spec.mesh.tensor
    if tensor not in tensor_degrees(size, on) or spec.mesh.data not in (None, data):
        return  # the mesh is no mesh of this slice, which another rule tells
    fit = training_fit(size, batch, tensor, on)
    if fit.holds:
        return
    wider = {shape: _degree(size, batch, tensor, shape) for shape in smallest(_holds(size, batch, tensor))}
    holding = [_words(shape, degree, tensor) for shape, degree in wider.items()]
    reason = _reason(f"global_batch {batch}", fit, on, data, tensor)
    steps = _most(1, batch // on.devices, lambda n: training_fit(size, n * on.devices, tensor, on).holds)
    degrees = _degrees(size, batch, on)
    if steps is not None and (entry.wrote("data.global_batch") or not (degrees or holding)):
        yield Problem(
            key=f"{entry.key}.data.global_batch",
            value=batch,
            reason=f"{reason}; {_these(holding)}",
            allowed=(f"multiples of {on.devices} up to {steps * on.devices}",),
            nearest=steps * on.devices,
        )
    elif degrees:
        yield Problem(
            key=f"{entry.key}.mesh.tensor",
            value=tensor,
            reason=f"{reason}; what tensor divides is not whole on every device",
            allowed=tuple(map(str, degrees)),
            nearest=degrees[0],
        )
    else:
        yield _pool_too_small(f"{entry.key}.pool", pool, reason, holding, on)


def _degrees(size: LlamaConfig, batch: int, on: Slice) -> tuple[int, ...]:
    """The tensor degrees with which the job fits on this slice, ascending; its batch as the slice divides it."""
    rows = next_batch(batch, on)
    return tuple(n for n in tensor_degrees(size, on) if training_fit(size, rows, n, on).holds)


def _holds(size: LlamaConfig, batch: int, tensor: int) -> Callable[[Slice], bool]:
    return lambda shape: _degree(size, batch, tensor, shape) is not None


def _degree(size: LlamaConfig, batch: int, tensor: int, on: Slice) -> int | None:
    """The tensor degree with which the job fits there: the asked one where that does, else the smallest."""
    degrees = _degrees(size, batch, on)
    return tensor if tensor in degrees else next(iter(degrees), None)


def _most(least: int, value: int, holds: Callable[[int], bool]) -> int | None:
    """The largest number below `value` that holds, where less never needs more; None where not even `least` does."""
    below = range(least, value)
    first = bisect_left(below, True, key=lambda number: not holds(number))
    return below[first - 1] if first else None


def _reason(what: str, fit: Fit, on: Slice, data: int, tensor: int) -> str:
    where = f"on {on.generation} {on.topology} (data {data} x tensor {tensor})"
    return f"{where} with {what} each chip needs {sum_of(fit)}; a {on.generation} chip has {on.hbm_gib_per_chip}"


def _words(shape: Slice, tensor: int | None = None, asked: int | None = None) -> str:
    words = f"{shape.generation} {shape.topology}"
    return words if tensor == asked else f"{words} with mesh.tensor {tensor}"


def _these(holding: Sequence[str]) -> str:
    return f"the smallest slices that hold it are {', '.join(holding)}" if holding else "no slice holds it"


def _pool_too_small(key: str, pool: str, reason: str, holding: Sequence[str], on: Slice) -> Problem:
    return Problem(
        key=key,
        value=pool,
        reason=f"{reason}; " + ("a pool of one of these slices holds it" if holding else "no slice holds it"),
        allowed=tuple(holding),
        nearest=next((words for words in holding if words.split()[0] == on.generation), None),
    )
