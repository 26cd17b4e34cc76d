"""What a chip costs per hour: the figures that were published, each with its source and its day. Pure."""

from datetime import date

from infra.plan.price import Mode, Price
from infra.plan.price_table import COMMITMENTS, PRICES
from infra.stack import Capacity

SPOT_PAGE = "https://cloud.google.com/spot-vms/pricing"
"""Where today's spot prices stand. They change up to once a day."""

LIST_DAYS, SPOT_DAYS = 180, 30
"""After how many days a figure is called old."""

MODES: dict[Capacity, Mode] = {
    "on-demand": "on-demand",
    "spot": "spot",
    "flex-start": "flex-start",
    # Both are the Dynamic Workload Scheduler's machines: https://cloud.google.com/products/dws/pricing
    "queued": "flex-start",
}
"""Under which mode a capacity is published. A reservation is not: its price is that of the commitment behind it."""


def region_of(zone: str) -> str:
    """The region of a zone: `us-east5` of `us-east5-b`."""
    return zone.rpartition("-")[0]


def published(generation: str, region: str, capacity: Capacity) -> Price | None:
    """The published price of a chip; None where none is known."""
    mode = MODES.get(capacity)
    return None if mode is None else PRICES.get((generation, region, mode))


def priced_regions(generation: str) -> tuple[str, ...]:
    """The regions for which a price of these chips is published, under any mode."""
    return tuple(sorted({region for known, region, _ in PRICES if known == generation}))


def commitments(generation: str, region: str) -> tuple[Price, ...]:
    """What a chip costs under a commitment of one and of three years, where that is published."""
    years: tuple[Mode, Mode] = ("1-year", "3-year")
    found = (COMMITMENTS.get((generation, region, mode)) for mode in years)
    return tuple(price for price in found if price is not None)


def age_limit(price: Price) -> int:
    """Days after which the figure is called old."""
    return SPOT_DAYS if price.mode == "spot" else LIST_DAYS


def is_old(price: Price, today: date) -> bool:
    """Whether the figure is older than its kind may be, or Google announced another for a day that has come."""
    announced = price.changes_from is not None and today >= price.changes_from
    return announced or (today - price.day).days > age_limit(price)
