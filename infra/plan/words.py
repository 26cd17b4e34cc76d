"""Chips and dollars as people read them. Pure."""

from infra.plan.report import Plan

HOURS = 720
"""Hours of 30 days."""
UNKNOWN = "unknown"


def span(least: int, most: int) -> str:
    """`4`, or `4 to 20`."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def usd(amount: float | None, known: float = 0.0) -> str:
    """`$10.80`; `unknown`, with what is known of it, where a price is missing."""
    if amount is not None:
        return f"${amount:,.2f}"
    return f"{UNKNOWN}, at least ${known:,.2f}" if known else UNKNOWN


def usd_span(least: float | None, most: float | None) -> str:
    """`$10.80`, or `$10.80 to $54.00`."""
    return usd(least) if least == most else f"{usd(least)} to {usd(most)}"


def totals(plan: Plan, hours: int = 1) -> tuple[str, str, str]:
    """Dollars of so many hours: kept, at the peak of an upgrade, at most."""
    dollars, known = plan.usd_per_hour, plan.known_usd_per_hour
    pairs = ((dollars.min, known.min), (dollars.upgrade_peak, known.upgrade_peak), (dollars.max, known.max))
    kept, peak, most = (usd(None if some is None else some * hours, sure * hours) for some, sure in pairs)
    return kept, peak, most


def price_days(plan: Plan) -> str:
    """Of which days the prices are: `2026-09-17`, or `2026-06-03 to 2026-09-17`; empty where there are none."""
    days = sorted({str(pool.price.day) for pool in plan.pools if pool.price is not None and pool.price.day is not None})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""
