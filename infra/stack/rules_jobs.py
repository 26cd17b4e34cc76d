"""Rules about jobs: the name fits DNS, the mesh is the slice, the batch and the model divide over it."""

from collections.abc import Iterator, Mapping, Sequence

from infra.stack.problems import Problem
from infra.stack.rules_pools import Pool, same_names
from infra.stack.rules_schedule import TIME_LENGTH
from infra.stack.rules_services import longest_name, pool_of, unknown_pool, waiting_in_order, why_longest
from infra.stack.translate import Entry
from workloads.spec import BUNDLED_TEXTS, JobSpec, Slice
from workloads.spec.nearest import nearest


def job_problems(entries: Sequence[Entry[JobSpec]], pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Everything that is wrong with the jobs beyond their single keys."""
    yield from same_names(entries, "job")
    yield from _same_runs(entries)
    for entry in entries:
        pool = pool_of(entry, pools)
        yield from unknown_pool(entry, pools)
        yield from _name(entry, pool)
        if entry.wrote("entrypoint"):
            continue
        yield from _model(entry)
        yield from _source(entry)
        if pool is not None and pool.slice is not None:
            yield from _mesh(entry, pool.slice)
            yield from _batch(entry, pool.slice)
        yield from waiting_in_order(entry, "reserve_timeout_s", "timeout_s")


def nearest_divisor(value: int, whole: int) -> int:
    """The divisor of `whole` closest to `value`, the smaller of two."""
    return min((n for n in range(1, whole + 1) if whole % n == 0), key=lambda n: (abs(n - value), n))


def nearest_multiple(value: int, step: int) -> int:
    """The multiple of `step` closest to `value`, at least one `step`, the larger of two."""
    return max(1, (2 * value + step) // (2 * step)) * step


def _run_name(entry: Entry[JobSpec]) -> str | None:
    name = entry.text("name")
    run = entry.text("run") if entry.wrote("run") else str(JobSpec.model_fields["run"].default)
    return None if name is None or run is None else f"{name}-{run}"


def _name(entry: Entry[JobSpec], pool: Pool | None) -> Iterator[Problem]:
    name, run_name, longest = entry.text("name"), _run_name(entry), longest_name(pool)
    most = longest - TIME_LENGTH if entry.wrote("schedule") else longest
    if name is None or run_name is None or len(run_name) <= most:
        return
    time = f" beside the time of a scheduled run ({TIME_LENGTH} characters)" if entry.wrote("schedule") else ""
    run = run_name[len(name) + 1 :]
    left = most - len(run) - 1
    yield Problem(
        key=f"{entry.key}.name",
        value=name,
        reason=f"with its run this is {run_name}, {len(run_name)} characters; at most {most} fit{time} "
        + why_longest(longest),
        allowed=(f"at most {max(left, 1)} characters" + ("" if left > 0 else " and a shorter run"),),
        nearest=name[:left].rstrip("-") if left > 0 else None,
    )


def _same_runs(entries: Sequence[Entry[JobSpec]]) -> Iterator[Problem]:
    """Two jobs whose name and run join to the same RayJob: job `a` with run `b-c`, job `a-b` with run `c`."""
    first: dict[str, Entry[JobSpec]] = {}
    for entry in entries:
        run_name = _run_name(entry)
        if run_name is None:
            continue
        other = first.setdefault(run_name, entry)
        if other is not entry and other.text("name") != entry.text("name"):
            reason = f"job and run together are {run_name}, as those of {other.key} are"
            yield Problem(key=f"{entry.key}.run", value=entry.text("run"), reason=reason)


def _model(entry: Entry[JobSpec]) -> Iterator[Problem]:
    """Heads share the width (an even share each: half of it turns with the position) and the KV heads the heads.

    Where two numbers do not fit each other, the one that the user wrote is told; both: the width, the KV heads.
    """
    if entry.spec is None:
        return
    model, key = entry.spec.model, f"{entry.key}.model"
    only_heads = entry.wrote("model.heads") and not (entry.wrote("model.width") and entry.wrote("model.kv_heads"))
    if entry.sound("model.width", "model.heads") and model.width % (2 * model.heads):
        reason = f"each of the {model.heads} heads needs an equal, even part of the width ({model.width})"
        if only_heads and not entry.wrote("model.width"):
            fit = tuple(n for n in range(1, model.width + 1) if model.width % (2 * n) == 0 and n % model.kv_heads == 0)
            yield Problem(
                key=f"{key}.heads",
                value=model.heads,
                reason=reason,
                allowed=tuple(map(str, fit)),
                nearest=min(fit, key=lambda n: abs(n - model.heads), default=None),
            )
            return
        yield Problem(
            key=f"{key}.width",
            value=model.width,
            reason=reason,
            allowed=(f"multiples of {2 * model.heads}",),
            nearest=nearest_multiple(model.width, 2 * model.heads),
        )
    if entry.sound("model.kv_heads", "model.heads") and model.heads % model.kv_heads:
        reason = f"the {model.heads} heads must share the {model.kv_heads} KV heads equally"
        if only_heads and not entry.wrote("model.kv_heads"):
            yield Problem(
                key=f"{key}.heads",
                value=model.heads,
                reason=reason,
                allowed=(f"multiples of {model.kv_heads}",),
                nearest=nearest_multiple(model.heads, model.kv_heads),
            )
            return
        yield Problem(
            key=f"{key}.kv_heads",
            value=model.kv_heads,
            reason=reason,
            allowed=_divisors(model.heads),
            nearest=nearest_divisor(model.kv_heads, model.heads),
        )


def _mesh(entry: Entry[JobSpec], found: Slice) -> Iterator[Problem]:
    if entry.spec is None or not entry.sound("mesh.data", "mesh.tensor"):
        return
    mesh, model, key, devices = entry.spec.mesh, entry.spec.model, f"{entry.key}.mesh", found.devices
    what = f"the {devices} devices of a {found.generation} slice {found.topology}"
    if devices % mesh.tensor:
        yield Problem(
            key=f"{key}.tensor",
            value=mesh.tensor,
            reason=f"must divide {what}",
            allowed=_divisors(devices),
            nearest=nearest_divisor(mesh.tensor, devices),
        )
    elif mesh.data is not None and mesh.data * mesh.tensor != devices:
        yield Problem(
            key=f"{key}.data",
            value=mesh.data,
            reason=f"data x tensor must be {what}, and is {mesh.data} x {mesh.tensor} = {mesh.data * mesh.tensor}",
            allowed=(str(devices // mesh.tensor),),
            nearest=devices // mesh.tensor,
        )
    elif entry.sound("model.heads") and model.heads % mesh.tensor:
        both = tuple(n for n in range(1, model.heads + 1) if model.heads % n == 0 and devices % n == 0)
        yield Problem(
            key=f"{key}.tensor",
            value=mesh.tensor,
            reason=f"must divide the model's heads ({model.heads})",
            allowed=tuple(map(str, both)),
            nearest=min(both, key=lambda n: abs(n - mesh.tensor)),
        )


def _batch(entry: Entry[JobSpec], found: Slice) -> Iterator[Problem]:
    if entry.spec is None or not entry.sound("data.global_batch"):
        return
    # Whatever the mesh: the batches come divided over all devices, and only then take the mesh's form.
    batch, devices = entry.spec.data.global_batch, found.devices
    if batch % devices:
        default = "" if entry.wrote("data.global_batch") else f"; {batch} is the default"
        yield Problem(
            key=f"{entry.key}.data.global_batch",
            value=batch,
            reason=f"the rows of a batch must divide equally over the {devices} devices of a {found.generation} slice "
            f"{found.topology}{default}",
            allowed=(f"multiples of {devices}",),
            nearest=nearest_multiple(batch, devices),
        )


def _source(entry: Entry[JobSpec]) -> Iterator[Problem]:
    if entry.spec is None or not entry.sound("data.source"):
        return
    source, key = entry.spec.data.source, f"{entry.key}.data.source"
    bundled = tuple(f"bundled:{name}" for name in BUNDLED_TEXTS)
    if source in bundled or source.endswith((".txt", ".parquet")):
        return
    close = nearest(source, bundled)
    if source.startswith("bundled:"):
        reason = "no text of this name comes with the package"
        close = close or bundled[0]
    else:
        reason = "neither a bundled text nor a path to a .txt or .parquet file"
    yield Problem(
        key=key, value=source, reason=reason, allowed=(*bundled, "a path to .txt", "a path to .parquet"), nearest=close
    )


def _divisors(whole: int) -> tuple[str, ...]:
    return tuple(str(n) for n in range(1, whole + 1) if whole % n == 0)
