"""Machines that were asked for where Google has none."""

from datetime import date

import pytest

from infra.plan.report import plan
from infra.stack import parse_stack
from tests.cases.stacks import config, pool

TODAY = date(2026, 12, 2)


def warned(generation: str, topology: str, zone: str, **keys: object) -> list[str]:
    """What is warned of beside the pool's generation."""
    place = {"region": zone.rpartition("-")[0], "zone": zone}
    stack = parse_stack(config(pool(generation, topology, **keys), **place))  # type: ignore[arg-type]
    return [one.reason for one in plan("s", stack, TODAY).warnings if one.key == "tpu-ray:pools[0].generation"]


@pytest.mark.parametrize(
    ("generation", "topology", "zone", "where"),
    [
        ("v4", "2x2x2", "us-east5-b", "us-central2"),
        ("v7x", "2x2x2", "us-east5-b", "us-central1"),
        ("v5p", "2x2x2", "us-west4-a", "us-east5"),
    ],
)
def test_a_region_without_the_machines_is_told_before_the_cluster_is_paid(
    generation: str, topology: str, zone: str, where: str
) -> None:
    """GKE says `Invalid machine type` of a node pool, when the cluster has been made and is paid.

    https://cloud.google.com/tpu/docs/regions-zones
    """
    (reason,) = warned(generation, topology, zone)
    assert zone.rpartition("-")[0] in reason.partition("published for any")[0]
    assert where in reason.rpartition("published for")[2].replace(",", "").split()


@pytest.mark.parametrize(
    ("generation", "topology", "zone"),
    [
        ("v4", "2x2x2", "us-central2-b"),
        ("v5e", "4x4", "us-west4-a"),
        ("v5p", "2x2x2", "us-east5-a"),
        ("v6e", "4x4", "us-east5-b"),
        ("v7x", "2x2x2", "us-central1-c"),
        ("v7x", "2x2x2", "us-central1-ai1a"),
    ],
)
@pytest.mark.parametrize("capacity", ["on-demand", "spot", "reservation"])
def test_a_region_with_the_machines_is_not(generation: str, topology: str, zone: str, capacity: str) -> None:
    """https://cloud.google.com/tpu/docs/regions-zones"""
    reserved = {"reservation": "held"} if capacity == "reservation" else {}
    assert warned(generation, topology, zone, capacity=capacity, **reserved) == []


def test_whoever_writes_a_price_knows_the_place() -> None:
    """https://cloud.google.com/tpu/docs/regions-zones names no place that is not open to everybody."""
    assert warned("v7x", "2x2x2", "us-east5-b", usd_per_chip_hour=9.5) == []
