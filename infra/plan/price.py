"""One published price."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Mode = Literal["on-demand", "spot", "flex-start", "1-year", "3-year"]
"""How the machines are sold; `1-year` and `3-year` are commitments."""


@dataclass(frozen=True)
class Price:
    """What Google asks for one chip for one hour.

    `day` is the day of the page, or the earliest day that the copy can be of. `via` is where it was read when that was
    not the page itself.
    """

    generation: str
    region: str
    mode: Mode
    usd_per_chip_hour: float
    source: str
    day: date
    via: str | None = None
    changes_from: date | None = None
    """From when Google's page announced another price, where it did."""
