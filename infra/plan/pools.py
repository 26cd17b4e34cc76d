"""The pools of a plan: their shape, their slices and what their chips cost. Pure."""

from datetime import date

from pydantic import BaseModel, ConfigDict

from infra.plan.chips import kept
from infra.plan.price import Price
from infra.plan.prices import published, region_of
from infra.stack import Capacity, GkePlatform, PoolSpec, SliceCount, StackSpec

OWN_PRICE = "the stack file"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PriceFound(_Frozen):
    """The price that a pool's dollars are made from. `day` is None where the stack file says the price."""

    usd_per_chip_hour: float
    source: str
    via: str | None = None
    day: date | None = None


class DollarRange(_Frozen):
    """Dollars per hour, to a hundredth of a cent. None: the price is not known."""

    min: float | None
    max: float | None


class PoolPlan(_Frozen):
    """One pool. `hosts` are those of one slice; `zone` is None on one machine."""

    name: str
    generation: str
    topology: str
    machine_type: str
    hosts: int
    chips_per_slice: int
    slices: SliceCount
    capacity: Capacity
    zone: str | None
    price: PriceFound | None
    usd_per_hour: DollarRange

    def cost(self, chips: int) -> float | None:
        """Dollars per hour of that many of its chips. No chips cost nothing, whatever their price."""
        if chips == 0:
            return 0.0
        return None if self.price is None else round(chips * self.price.usd_per_chip_hour, 4)


def zone_of(platform: GkePlatform, pool: PoolSpec) -> str:
    """Where the pool's machines are."""
    return pool.zone or platform.zone


def price_row(stack: StackSpec, pool: PoolSpec) -> Price | None:
    """The published price of the pool's chips, where one is known and the stack file does not say its own."""
    if not isinstance(stack.platform, GkePlatform) or pool.usd_per_chip_hour is not None:
        return None
    return published(pool.generation, region_of(zone_of(stack.platform, pool)), pool.capacity)


def pool_plan(stack: StackSpec, pool: PoolSpec) -> PoolPlan:
    """What will be there of the pool."""
    shape, least, most = pool.slice, kept(stack, pool), pool.slices.max
    bare = PoolPlan(
        name=pool.name,
        generation=shape.generation,
        topology=shape.topology,
        machine_type=shape.machine_type,
        hosts=shape.hosts,
        chips_per_slice=shape.chips,
        slices=SliceCount(min=least, max=most),
        capacity=pool.capacity,
        zone=zone_of(stack.platform, pool) if isinstance(stack.platform, GkePlatform) else None,
        price=_price(stack, pool),
        usd_per_hour=DollarRange(min=None, max=None),
    )
    dollars = DollarRange(min=bare.cost(least * shape.chips), max=bare.cost(most * shape.chips))
    return bare if stack.platform.kind == "local" else bare.model_copy(update={"usd_per_hour": dollars})


def _price(stack: StackSpec, pool: PoolSpec) -> PriceFound | None:
    if stack.platform.kind == "local":
        return None
    if pool.usd_per_chip_hour is not None:
        return PriceFound(usd_per_chip_hour=pool.usd_per_chip_hour, source=OWN_PRICE)
    row = price_row(stack, pool)
    if row is None:
        return None
    return PriceFound(usd_per_chip_hour=row.usd_per_chip_hour, source=row.source, via=row.via, day=row.day)
