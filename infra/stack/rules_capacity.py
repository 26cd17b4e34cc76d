"""Rules about who gets which slice: what runs at the same time on one pool must fit in it."""

from collections.abc import Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.problems import Problem
from infra.stack.rules_pools import Pool
from infra.stack.rules_runs import is_paused
from infra.stack.translate import Entry
from workloads.spec import JobSpec, ServiceSpec


def capacity_problems(
    services: Sequence[Entry[ServiceSpec]], jobs: Sequence[Entry[JobSpec]], pools: Mapping[str, Pool]
) -> Iterator[Problem]:
    """Services that ask for more slices than their pool has, and jobs that services leave no slice for.

    A service keeps its slices; a job frees its slice when it ends. So a service may take the slice of the job whose
    model it serves (`model: job:<name>`), since it starts after that job, and jobs may take turns.
    """
    for pool in pools.values():
        if pool.slices is None:
            continue
        here = [entry for entry in services if entry.text("pool") == pool.name and entry.sound("replicas")]
        greedy = [entry for entry in here if _replicas(entry) > pool.slices]
        for entry in greedy:
            yield _too_many(entry, pool, pool.slices, f"pool {pool.name} has {_slices(pool.slices)} at most")
        if not greedy:
            yield from _together(here, pool, pool.slices)
            for job in jobs:
                if job.text("pool") == pool.name:
                    yield from _no_slice_left(job, here, pool.slices)


def _together(services: Sequence[Entry[ServiceSpec]], pool: Pool, slices: int) -> Iterator[Problem]:
    """Services of one pool that fit each alone but not all at once; told at the one that no longer fits."""
    taken: list[Entry[ServiceSpec]] = []
    for entry in services:
        before = sum(_replicas(other) for other in taken)
        if before + _replicas(entry) > slices:
            others = " and ".join(f"{other.key}.replicas" for other in taken)
            takes = "takes" if len(taken) == 1 else "take"
            reason = f"pool {pool.name} has {_slices(slices)} at most, and {others} {takes} {before}"
            yield _too_many(entry, pool, slices - before, reason)
        else:
            taken.append(entry)


def _no_slice_left(job: Entry[JobSpec], services: Sequence[Entry[ServiceSpec]], slices: int) -> Iterator[Problem]:
    name = job.text("name")
    lasting = [entry for entry in services if name is None or entry.text("model") != f"job:{name}"]
    taken = sum(_replicas(entry) for entry in lasting)
    if taken <= slices - 1 or taken > slices:
        return
    keys = " and ".join(f"{entry.key}.pool" for entry in lasting)
    keep = f"{'keeps' if len(lasting) == 1 else 'keep'} {'the only slice' if slices == 1 else f'all {slices} slices'}"
    yield Problem(
        key=f"{job.key}.pool",
        value=job.text("pool"),
        reason=f"{keys} {keep} of this pool, so this job would wait in vain; "
        "give the pool one slice more, or the job a pool of its own",
    )


def keep_cluster_problems(
    platform: Entry[LocalPlatform | GkePlatform] | None,
    services: Sequence[Entry[ServiceSpec]],
    jobs: Sequence[Entry[JobSpec]],
    pools: Mapping[str, Pool],
) -> Iterator[Problem]:
    """A finished run that keeps its slice longer than the service of its model waits for it.

    Only on GKE: on one machine the Ray cluster is the stack's, and a run that has ended keeps nothing of it.
    """
    if platform is None or not isinstance(platform.spec, GkePlatform):
        return
    for job in jobs:
        pool, stays = pools.get(job.text("pool") or ""), job.raw.get("keep_cluster_s")
        if pool is None or pool.slices is None or not isinstance(stays, int) or not job.sound("keep_cluster_s"):
            continue
        here = [entry for entry in services if entry.text("pool") == pool.name and not is_paused(entry)]
        runs = sum(1 for other in jobs if other.text("pool") == pool.name)
        if sum(map(_replicas, here)) + runs <= pool.slices:
            continue
        for entry in here:
            if entry.text("model") != f"job:{job.text('name')}" or entry.spec is None:
                continue
            waits = {name: getattr(entry.spec, name) for name in ("reserve_timeout_s", "ready_timeout_s")}
            name, most = min(waits.items(), key=lambda wait: wait[1])
            if stays > most:
                yield Problem(
                    key=f"{job.key}.keep_cluster_s",
                    value=stays,
                    reason=f"{entry.key} waits for this very slice, {most} seconds ({name}): pool {pool.name} has "
                    f"{_slices(pool.slices)} at most, too few for all that is on it",
                    allowed=(f"0 to {most}", "more slices in the pool"),
                    nearest=most,
                )
                break


def _too_many(entry: Entry[ServiceSpec], pool: Pool, free: int, reason: str) -> Problem:
    if entry.wrote("replicas"):
        key, value = f"{entry.key}.replicas{'.max' if entry.wrote('replicas.max') else ''}", _replicas(entry)
        allowed, close = ((f"1 to {free}",), free) if free else ((), None)
        return Problem(key=key, value=value, reason=reason, allowed=allowed, nearest=close)
    return Problem(key=f"{entry.key}.pool", value=pool.name, reason=reason)


def _replicas(entry: Entry[ServiceSpec]) -> int:
    """Those that it may come to: what is promised to a service is there when it is needed."""
    return entry.spec.replicas.max if entry.spec is not None else 1


def _slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count} slices"
