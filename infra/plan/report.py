"""The plan of a stack: what will exist, how many chips that is and what they cost. Pure: the day is an
argument, and so is who knows how large a model is."""

from datetime import date
from math import fsum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from infra.plan.cautions import Warn, warnings_of
from infra.plan.chips import at_upgrade, kept, to_roll_out, upgrade_strategy
from infra.plan.fit import HbmPlan, job_hbm, service_hbm
from infra.plan.pools import PoolPlan, pool_plan
from infra.stack import StackSpec
from infra.stack.model_size import SizeOf, size_here
from workloads.spec import JobSpec, ServiceSpec


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Upgrade(_Frozen):
    """What a change of a service's cluster does: of its image, its pool's shape. All else is changed in place."""

    strategy: Literal["NewCluster", "None", "InPlace"]
    """KubeRay's word; `InPlace` on one machine."""
    means: str


class ServicePlan(_Frozen):
    """One service. `replicas` and `chips`: at most; `least_replicas` are always there. `hbm` is None on one machine."""

    name: str
    pool: str
    least_replicas: int
    replicas: int
    chips: int
    upgrade: Upgrade
    hbm: HbmPlan | None


class JobPlan(_Frozen):
    """One run of a job. `chips`: while it runs. `hbm` is None on one machine."""

    name: str
    run: str
    pool: str
    chips: int
    timeout_s: int
    hbm: HbmPlan | None


class Chips(_Frozen):
    """Chips of all pools: kept, at the peak of an upgrade, at most."""

    min: int
    max: int
    upgrade_peak: int


class Dollars(_Frozen):
    """Dollars per hour for these chips. None: a chip among them has no known price."""

    min: float | None
    max: float | None
    upgrade_peak: float | None


class KnownDollars(_Frozen):
    """The part of the dollars per hour whose price is known."""

    min: float
    max: float
    upgrade_peak: float


class Plan(_Frozen):
    """What a stack file means before anything of it is made."""

    ok: bool = True
    stack: str
    platform: Literal["gke", "local"]
    pools: tuple[PoolPlan, ...]
    services: tuple[ServicePlan, ...]
    jobs: tuple[JobPlan, ...]
    chips: Chips
    usd_per_hour: Dollars
    known_usd_per_hour: KnownDollars
    warnings: tuple[Warn, ...]


def plan(name: str, stack: StackSpec, today: date, size_of: SizeOf = size_here) -> Plan:
    """The plan of the stack of that name. `today` decides which prices are called old, `size_of` knows the models."""
    pools = tuple(pool_plan(stack, pool) for pool in stack.pools)
    peaks = [at_upgrade(stack, pool) * pool.slice.chips for pool in stack.pools]
    at_peak = [pool.cost(chips) for pool, chips in zip(pools, peaks, strict=True)]
    least, most = [pool.usd_per_hour.min for pool in pools], [pool.usd_per_hour.max for pool in pools]
    services = tuple(_service(stack, service, size_of) for service in stack.services)
    return Plan(
        stack=name,
        platform=stack.platform.kind,
        pools=pools,
        services=services,
        jobs=tuple(_job(stack, job) for job in stack.jobs),
        chips=Chips(
            min=sum(kept(stack, pool) * pool.slice.chips for pool in stack.pools),
            max=stack.chips,
            upgrade_peak=sum(peaks),
        ),
        usd_per_hour=Dollars(min=_total(least), max=_total(most), upgrade_peak=_total(at_peak)),
        known_usd_per_hour=KnownDollars(min=_known(least), max=_known(most), upgrade_peak=_known(at_peak)),
        warnings=warnings_of(stack, pools, today, [service.hbm for service in services]),
    )


def _total(parts: list[float | None]) -> float | None:
    return None if None in parts else _known(parts)


def _known(parts: list[float | None]) -> float:
    return round(fsum(part for part in parts if part is not None), 4)


def _service(stack: StackSpec, service: ServiceSpec, size_of: SizeOf) -> ServicePlan:
    return ServicePlan(
        name=service.name,
        pool=service.pool,
        least_replicas=service.replicas.min,
        replicas=service.replicas.max,
        chips=0 if service.paused else service.replicas.max * stack.pool(service.pool).slice.chips,
        upgrade=_upgrade(stack, service),
        hbm=service_hbm(stack, service, size_of),
    )


def _upgrade(stack: StackSpec, service: ServiceSpec) -> Upgrade:
    most = service.replicas.max
    one = most == 1
    if service.paused:
        return Upgrade(strategy="None", means="paused: it takes no slice")
    if stack.platform.kind == "local":
        means = f"Serve starts its {'replica' if one else 'replicas'} again on the same {'slice' if one else 'slices'}"
        return Upgrade(strategy="InPlace", means=means)
    if upgrade_strategy(stack, service) == "NewCluster":
        more = "1 slice" if one else f"{'up to ' if service.replicas.moves else ''}{most} slices"
        return Upgrade(strategy="NewCluster", means=f"a second cluster comes up on {more} more, then takes over")
    needed = to_roll_out(stack, service)
    return Upgrade(strategy="None", means=f"replaced, no answers meanwhile; {needed} slices would hold old and new")


def _job(stack: StackSpec, job: JobSpec) -> JobPlan:
    chips = stack.pool(job.pool).slice.chips
    hbm = job_hbm(stack, job)
    return JobPlan(name=job.name, run=job.run, pool=job.pool, chips=chips, timeout_s=job.timeout_s, hbm=hbm)
