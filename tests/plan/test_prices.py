"""The price table: every row has a source, a day and a region; figures that are known from elsewhere are in it."""

import re
from datetime import date

import pytest

from infra.plan.price import Price
from infra.plan.price_table import COMMITMENTS, PRICES
from infra.plan.prices import commitments, is_old, published
from infra.stack.forms import REGION
from workloads.spec.generations import GENERATIONS

ROWS = [*PRICES.values(), *COMMITMENTS.values()]
LOOKED_UP = date(2026, 12, 2)
"""The day on which the sources were read; no figure can be of a later one."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.generation}-{row.region}-{row.mode}")
def test_a_row_has_a_source_a_day_and_a_region(row: Price) -> None:
    assert re.fullmatch(r"https://(cloud[.]google[.]com|github[.]com)/\S+", row.source)
    assert row.via is None or re.fullmatch(r"https://github[.]com/\S+", row.via)
    assert date(2024, 1, 1) < row.day <= LOOKED_UP
    assert re.fullmatch(REGION, row.region)
    assert row.generation in GENERATIONS
    assert 0.1 < row.usd_per_chip_hour < 20
    assert row.usd_per_chip_hour != 700, "the catalogue's word for: not published"


def test_a_row_stands_under_its_own_key() -> None:
    for table in (PRICES, COMMITMENTS):
        for key, row in table.items():
            assert key == (row.generation, row.region, row.mode)


@pytest.mark.parametrize(
    ("generation", "region", "usd"),
    [
        ("v4", "us-central2", 3.22),
        ("v5e", "us-central1", 1.20),
        ("v5e", "europe-west4", 1.56),
        ("v5e", "us-south1", 1.416),
        ("v5p", "us-east5", 4.20),
        ("v6e", "us-east5", 2.70),
        ("v6e", "europe-west4", 2.97),
        ("v6e", "asia-northeast1", 3.24),
        ("v7x", "us-central1", 12.00),
    ],
)
def test_on_demand_prices_are_those_of_googles_page(generation: str, region: str, usd: float) -> None:
    row = published(generation, region, "on-demand")
    assert row is not None
    assert row.usd_per_chip_hour == usd


@pytest.mark.parametrize("key", [key for key in PRICES if key[2] in ("spot", "flex-start")])
def test_spot_and_flex_start_cost_less_than_on_demand(key: tuple[str, str, str]) -> None:
    dear = PRICES[key[0], key[1], "on-demand"]
    cheap = next(row for other, row in PRICES.items() if other == key)
    assert cheap.usd_per_chip_hour < dear.usd_per_chip_hour


def test_queued_machines_have_the_price_of_flex_start() -> None:
    assert published("v6e", "us-east5", "queued") == published("v6e", "us-east5", "flex-start")


@pytest.mark.parametrize(
    ("generation", "region", "capacity"),
    [
        ("v7x", "us-central1", "spot"),
        ("v5p", "us-east5", "flex-start"),
        ("v6e", "southamerica-west1", "spot"),
        ("v6e", "mars-north1", "on-demand"),
        ("v4", "us-east5", "on-demand"),
    ],
)
def test_a_price_that_was_not_found_is_none(generation: str, region: str, capacity: str) -> None:
    assert published(generation, region, capacity) is None  # type: ignore[arg-type]


def test_a_reservation_has_no_price_but_commitments_have() -> None:
    assert published("v6e", "us-east5", "reservation") is None
    assert [row.usd_per_chip_hour for row in commitments("v6e", "us-east5")] == [1.89, 1.22]
    assert [row.usd_per_chip_hour for row in commitments("v7x", "us-central1")] == [8.40, 5.40]
    assert commitments("v5p", "us-east5") == ()


def test_a_figure_is_old_after_half_a_year_and_a_spot_figure_after_a_month() -> None:
    list_price = Price("v6e", "us-east5", "on-demand", 2.7, "https://cloud.google.com/tpu/pricing", date(2026, 1, 1))
    assert not is_old(list_price, date(2026, 6, 30))
    assert is_old(list_price, date(2026, 7, 1))
    spot = Price("v6e", "us-east5", "spot", 1.2, "https://cloud.google.com/skus", date(2026, 1, 1))
    assert not is_old(spot, date(2026, 1, 31))
    assert is_old(spot, date(2026, 2, 1))


def test_a_figure_is_old_when_another_was_announced_for_a_day_that_has_come() -> None:
    flex = published("v6e", "us-east5", "flex-start")
    assert flex is not None
    assert not is_old(flex, date(2026, 10, 31))
    assert is_old(flex, date(2026, 11, 1))
