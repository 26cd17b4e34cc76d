"""Plans against numbers made by hand: chips, the peak of an upgrade, dollars."""

from datetime import date

import pytest

from infra.plan.chips import upgrade_strategy
from infra.plan.report import plan
from infra.stack import parse_stack
from tests.plan.stacks import JOB, known, pool, service, stack

TODAY = date(2026, 12, 2)


def test_two_pools_by_hand() -> None:
    # 2 kept slices of 4 chips at 2.70, up to 1 slice of 16 chips at 2.70: 8 and 24 chips, 21.60 and 64.80 an hour.
    pools = [pool("chat", slices=2), pool("train", "4x4", slices={"min": 0, "max": 1})]
    made = plan("prod", stack(pools, [service("chat", "chat", replicas=2)], [JOB]), TODAY)
    assert made.ok
    assert (made.stack, made.platform) == ("prod", "gke")
    assert made.chips.model_dump() == {"min": 8, "max": 24, "upgrade_peak": 24}
    assert made.usd_per_hour.model_dump() == {"min": 21.6, "max": 64.8, "upgrade_peak": 64.8}
    train = made.pools[1]
    assert (train.machine_type, train.hosts, train.chips_per_slice) == ("ct6e-standard-4t", 4, 16)
    assert train.slices.model_dump() == {"min": 0, "max": 1}
    assert train.usd_per_hour.model_dump() == {"min": 0.0, "max": 43.2}
    job = made.jobs[0].model_dump(exclude={"hbm"})
    assert job == {"name": "train", "run": "r1", "pool": "train", "chips": 16, "timeout_s": 3600}
    assert made.services[0].chips == 8


@pytest.mark.parametrize(
    ("slices", "replicas", "strategy", "peak"),
    [
        # kuberay#4239: the new cluster is built whole beside the old one.
        (1, 1, "None", 1),
        ({"min": 1, "max": 2}, 1, "NewCluster", 2),
        ({"min": 2, "max": 3}, 2, "None", 2),
        ({"min": 2, "max": 4}, 2, "NewCluster", 4),
        ({"min": 0, "max": 9}, 3, "NewCluster", 6),
        (5, 1, "NewCluster", 5),
    ],
)
def test_a_service_rolls_out_beside_itself_where_the_pool_holds_both(
    slices: object, replicas: int, strategy: str, peak: int
) -> None:
    made = plan("s", stack([pool("chat", slices=slices)], [service("chat", "chat", replicas=replicas)]), TODAY)
    assert made.services[0].upgrade.strategy == strategy
    assert made.chips.upgrade_peak == 4 * peak


@pytest.mark.parametrize(("most", "strategy", "peak"), [(6, "NewCluster", 6), (5, "None", 3)])
def test_a_range_of_replicas_counts_with_its_most(most: int, strategy: str, peak: int) -> None:
    """The new cluster may come while the old one has all its replicas."""
    one = service("chat", "chat", replicas={"min": 1, "max": 3})
    made = plan("s", stack([pool("chat", slices={"min": 1, "max": most})], [one]), TODAY)
    (found,) = made.services
    assert (found.least_replicas, found.replicas, found.chips) == (1, 3, 12)
    assert found.upgrade.strategy == strategy
    assert ("up to 3 slices" in found.upgrade.means) is (strategy == "NewCluster")
    assert made.chips.model_dump() == {"min": 4, "max": 4 * most, "upgrade_peak": 4 * peak}


def test_services_of_one_pool_that_fit_one_by_one_but_not_together_stop_at_the_pools_most() -> None:
    # Each of the two finds 2 + 1 slices, both at once would be 4 of 3.
    services = [service("a", "chat"), service("b", "chat")]
    made = plan("s", stack([pool("chat", slices={"min": 2, "max": 3})], services), TODAY)
    assert [s.upgrade.strategy for s in made.services] == ["NewCluster", "NewCluster"]
    assert made.chips.upgrade_peak == 12


def test_a_running_job_takes_its_slice_from_the_roll_out() -> None:
    pools = [pool("train", slices={"min": 0, "max": 2})]
    job = {**JOB, "data": {"global_batch": 32}}
    spec = stack(pools, [service("chat", "train")], [job])
    assert upgrade_strategy(spec, spec.services[0]) == "None"
    assert plan("s", spec, TODAY).chips.model_dump() == {"min": 0, "max": 8, "upgrade_peak": 8}


@pytest.mark.parametrize(
    ("capacity", "region", "zone", "usd"),
    [
        ("on-demand", "us-east5", "us-east5-b", 10.80),
        ("spot", "us-east5", "us-east5-b", 5.10),
        ("on-demand", "asia-northeast1", "asia-northeast1-b", 12.96),
        ("on-demand", "europe-west4", "europe-west4-a", 11.88),
    ],
)
def test_a_slice_of_four_v6e_chips_costs_what_was_published(capacity: str, region: str, zone: str, usd: float) -> None:
    place = {"region": region, "zone": zone}
    spec = stack([pool("chat", capacity=capacity)], [service("chat", "chat")], platform=place)
    assert plan("s", spec, TODAY).pools[0].usd_per_hour.max == pytest.approx(usd, abs=0.005)


def test_the_price_is_that_of_the_pools_own_zone() -> None:
    spec = stack([pool("chat", zone="us-east5-a")], [service("chat", "chat")])
    made = plan("s", spec, TODAY).pools[0]
    assert made.zone == "us-east5-a"
    assert made.price is not None
    assert (made.price.usd_per_chip_hour, made.price.day) == (2.7, date(2026, 9, 17))


def test_an_own_price_wins_over_the_published_one() -> None:
    made = plan("s", stack([pool("chat", usd_per_chip_hour=1.5)], [service("chat", "chat")]), TODAY)
    assert made.usd_per_hour.model_dump() == {"min": 6.0, "max": 6.0, "upgrade_peak": 6.0}
    assert made.pools[0].price is not None
    assert made.pools[0].price.source == "the stack file"


def test_an_unknown_price_makes_the_totals_unknown_and_leaves_what_is_known() -> None:
    pools = [pool("chat"), pool("big", "2x2x2", "v7x", capacity="spot", slices={"min": 0, "max": 2})]
    job = {**JOB, "pool": "big"}
    made = plan("s", stack(pools, [service("chat", "chat")], [job]), TODAY, known)
    assert made.pools[1].usd_per_hour.model_dump() == {"min": 0.0, "max": None}
    assert made.usd_per_hour.model_dump() == {"min": 10.8, "max": None, "upgrade_peak": None}
    assert made.known_usd_per_hour.model_dump() == {"min": 10.8, "max": 10.8, "upgrade_peak": 10.8}
    (warn,) = [w for w in made.warnings if "is not known" in w.reason]
    assert warn.key == "tpu-ray:pools[1].usd_per_chip_hour"
    assert "pool big" in warn.reason


def test_one_machine_has_chips_and_no_dollars() -> None:
    spec = parse_stack(
        {
            "tpu-ray:platform": "local",
            "tpu-ray:pools": [pool("quad", "4x4", slices={"min": 0, "max": 2})],
            "tpu-ray:services": [service("chat", "quad")],
        }
    )
    made = plan("local", spec, TODAY)
    # Nothing is added on demand on one machine: both slices are there.
    assert made.chips.model_dump() == {"min": 32, "max": 32, "upgrade_peak": 32}
    assert made.usd_per_hour.model_dump() == {"min": None, "max": None, "upgrade_peak": None}
    assert made.services[0].upgrade.strategy == "InPlace"
    assert [w.key for w in made.warnings] == ["tpu-ray:platform"]
    assert "no dollars" in made.warnings[0].reason
