"""What a stack file allows and its reader should know before paying for it. Pure."""

from collections.abc import Iterator, Sequence
from datetime import date

from pydantic import BaseModel, ConfigDict

from infra.plan.chips import always_used, kept, of_services, to_roll_out, upgrade_strategy
from infra.plan.fit import UNCHECKED, HbmPlan
from infra.plan.node_pools import MAX_RUN_S
from infra.plan.pools import PoolPlan, price_row, zone_of
from infra.plan.price import Price
from infra.plan.prices import SPOT_PAGE, commitments, is_old, priced_regions, region_of
from infra.stack import GkePlatform, PoolSpec, StackSpec
from infra.stack.rules_modes import LENT
from workloads.spec import EngineSpec


class Warn(BaseModel):
    """One warning. `key` is the place in the stack file that it is about, as the user writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


def warnings_of(
    stack: StackSpec, pools: Sequence[PoolPlan], today: date, hbm: Sequence[HbmPlan | None]
) -> tuple[Warn, ...]:
    """All warnings: about dollars first, then pool by pool, service by service, job by job. `hbm`: the services'."""
    platform = stack.platform
    if not isinstance(platform, GkePlatform):
        free = "emulated slices on this machine: their chips are no TPU chips and cost no dollars"
        return (Warn(key="tpu-ray:platform", reason=free),)
    return (
        *_not_counted(platform),
        *_image(platform),
        *_unknown_places(stack, platform, pools),
        *_unknown_prices(stack, platform, pools),
        *_old_prices(stack, today),
        *_pools(stack, pools),
        *_services(stack),
        *_unknown_sizes(stack, hbm),
        *_jobs(stack),
    )


def _not_counted(platform: GkePlatform) -> Iterator[Warn]:
    rest = "GKE's fee for the cluster, nodes without chips, disks, buckets, traffic, logs"
    yield Warn(key="tpu-ray:platform", reason=f"dollars are those of the TPU chips alone; not counted: {rest}")
    if not platform.cluster.gets_pools:
        reason = "no node pool is made in this cluster: slices and dollars are what the stack asks of pools it has"
        yield Warn(key="tpu-ray:platform.cluster.kubeconfig", reason=reason)


def _image(platform: GkePlatform) -> Iterator[Warn]:
    """Code in an image that is named by its tag alone, or by no digest of any image."""
    name, at, digest = platform.image.partition("@sha256:")
    if platform.code == "image" and not at:
        reason = (
            "a tag can be pushed anew: pods that start later then run other code than those beside them, and no "
            f"preview shows it; write {name}@sha256:<the digest that `docker push` printed>"
        )
        yield Warn(key="tpu-ray:platform.image", reason=reason)
    elif at and not digest.strip("0"):
        reason = f"these zeros stand for the image's digest: write the one that `docker push {name}` printed"
        yield Warn(key="tpu-ray:platform.image", reason=reason)


def _unknown_places(stack: StackSpec, platform: GkePlatform, pools: Sequence[PoolPlan]) -> Iterator[Warn]:
    """Where no chip of the generation is sold, GKE refuses the machine type only when everything else is there."""
    for number, (pool, planned) in enumerate(zip(stack.pools, pools, strict=True)):
        region, known = region_of(zone_of(platform, pool)), priced_regions(pool.generation)
        if planned.price is None and region not in known:
            reason = (
                f"no price of {pool.generation} in {region} is published for any capacity, so there may be no such "
                f"machines; published for {', '.join(known)}"
            )
            yield Warn(key=f"tpu-ray:pools[{number}].generation", reason=reason)


def _unknown_prices(stack: StackSpec, platform: GkePlatform, pools: Sequence[PoolPlan]) -> Iterator[Warn]:
    for number, (pool, planned) in enumerate(zip(stack.pools, pools, strict=True)):
        if planned.price is not None:
            continue
        region = region_of(zone_of(platform, pool))
        known = commitments(pool.generation, region) if pool.capacity == "reservation" else ()
        published = ", ".join(f"${row.usd_per_chip_hour:g} for {_years(row)} (read {row.day})" for row in known)
        reason = (
            f"the price of a {pool.generation} chip, {pool.capacity}, in {region} is not known, so the totals lack "
            f"pool {pool.name}; write here what a chip costs you per hour"
        )
        yield Warn(
            key=f"tpu-ray:pools[{number}].usd_per_chip_hour",
            reason=f"{reason}. Published for commitments: {published}" if published else reason,
        )


def _years(row: Price) -> str:
    return "1 year" if row.mode == "1-year" else "3 years"


def _old_prices(stack: StackSpec, today: date) -> Iterator[Warn]:
    """One warning for each old figure, at the first pool that uses it."""
    first: dict[Price, list[int]] = {}
    for number, pool in enumerate(stack.pools):
        row = price_row(stack, pool)
        if row is not None and is_old(row, today):
            first.setdefault(row, []).append(number)
    for row, numbers in first.items():
        names = [stack.pools[number].name for number in numbers]
        others = f" and {len(names) - 3} more" if len(names) > 3 else ""
        page = SPOT_PAGE if row.mode == "spot" else row.source
        why = "prices of spot machines change daily" if row.mode == "spot" else "it may have changed"
        if row.changes_from is not None and today >= row.changes_from:
            why = f"Google announced other prices from {row.changes_from} on"
        reason = (
            f"${row.usd_per_chip_hour:g} for a {row.generation} chip, {row.mode}, in {row.region} is of {row.day}, "
            f"{(today - row.day).days} days ago, and {why}; look at {page} and write the price here "
            f"({'pool' if len(names) == 1 else 'pools'} {', '.join(names[:3])}{others})"
        )
        yield Warn(key=f"tpu-ray:pools[{numbers[0]}].usd_per_chip_hour", reason=reason)


def _pools(stack: StackSpec, pools: Sequence[PoolPlan]) -> Iterator[Warn]:
    for number, (pool, planned) in enumerate(zip(stack.pools, pools, strict=True)):
        key = f"tpu-ray:pools[{number}]"
        least, used, most = kept(stack, pool), always_used(stack, pool), of_services(stack, pool)
        if least > used:
            idle = least - used
            chips = idle * planned.chips_per_slice
            rolls_out = any(upgrade_strategy(stack, s) == "NewCluster" for s in stack.services if s.pool == pool.name)
            reason = (
                f"services use {_span(used, most)} of the {_slices(least)} that are kept; {_slices(idle)} "
                f"({_chips(chips)}, "
                f"{dollars(planned.cost(chips))} an hour) {'is' if idle == 1 else 'are'} billed also while nothing "
                f"{'runs or rolls out' if rolls_out else 'runs'} there"
            )
            yield Warn(key=f"{key}.slices.min", reason=reason)
        if used > least:
            chips = used * planned.chips_per_slice
            reason = (
                f"services always use {_slices(used)}, so the pool is never at its least of {least}: "
                f"{_chips(chips)}, {dollars(planned.cost(chips))} an hour, are always billed"
            )
            yield Warn(key=f"{key}.slices.min", reason=reason)
        if pool.capacity in LENT:
            reason = (
                f"a machine of this pool comes only when Google has one free, and is taken back after "
                f"{_time(max_run_s(pool))}: what runs on it ends"
            )
            yield Warn(key=f"{key}.capacity", reason=reason)


def max_run_s(pool: PoolSpec) -> int:
    """How long a lent machine of the pool is kept, in seconds."""
    return pool.max_run_s or MAX_RUN_S


def _services(stack: StackSpec) -> Iterator[Warn]:
    for number, service in enumerate(stack.services):
        if service.paused:
            continue
        pool, key = stack.pool(service.pool), f"tpu-ray:services[{number}]"
        if pool.capacity == "spot":
            reason = (
                f"pool {pool.name} is spot: Google takes a slice back with 30 seconds' notice, and {service.name} has "
                "one replica less until another slice is free"
            )
            yield Warn(key=f"{key}.pool", reason=reason)
        least, used = kept(stack, pool), always_used(stack, pool)
        if service.replicas.moves and least > used:
            reason = (
                f"a replica that goes saves nothing while pool {pool.name} keeps {_slices(least)}; with slices.min "
                f"{used} its slice would go too"
            )
            yield Warn(key=f"{key}.replicas", reason=reason)
        if upgrade_strategy(stack, service) == "None":
            reason = (
                f"a change of image or shape replaces {service.name}, which does not answer meanwhile; with "
                f"slices.max {to_roll_out(stack, service)} pool {pool.name} could hold old and new"
            )
            yield Warn(key=f"{key}.pool", reason=reason)


def _unknown_sizes(stack: StackSpec, hbm: Sequence[HbmPlan | None]) -> Iterator[Warn]:
    for number, (service, chip) in enumerate(zip(stack.services, hbm, strict=True)):
        if chip is None or chip.unchecked is None:
            continue
        key, bundled = f"tpu-ray:services[{number}]", isinstance(service.engine, EngineSpec)
        why = f"the size of {service.model} is not known here ({chip.unchecked})" if bundled else chip.unchecked
        yield Warn(key=f"{key}.{'model' if bundled else 'engine'}", reason=f"{why}, so whether it fits is {UNCHECKED}")


def _jobs(stack: StackSpec) -> Iterator[Warn]:
    for number, job in enumerate(stack.jobs):
        pool, key = stack.pool(job.pool), f"tpu-ray:jobs[{number}]"
        if pool.capacity == "spot" and job.max_failures == 0:
            reason = (
                f"pool {pool.name} is spot and {job.name} is not restarted: a slice that is taken back ends the run"
            )
            yield Warn(key=f"{key}.max_failures", reason=reason)
        if pool.capacity in LENT and job.timeout_s > max_run_s(pool):
            reason = (
                f"a run may take {_time(job.timeout_s)}, but pool {pool.name} keeps a machine for "
                f"{_time(max_run_s(pool))} only"
            )
            yield Warn(key=f"{key}.timeout_s", reason=reason)


def dollars(amount: float | None) -> str:
    """`$1,234.50`, or `unknown`."""
    return "unknown dollars" if amount is None else f"${amount:,.2f}"


def _span(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def _slices(count: int) -> str:
    return "1 slice" if count == 1 else f"{count} slices"


def _chips(count: int) -> str:
    return "1 chip" if count == 1 else f"{count} chips"


def _time(seconds: int) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return f"{seconds} seconds"
