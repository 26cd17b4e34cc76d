"""Each warning comes when its reason is there, with the key as the user writes it, and not otherwise."""

from datetime import date

import pytest

from infra.plan.report import plan
from infra.stack import StackSpec
from tests.plan.stacks import JOB, known, pool, service, stack

TODAY = date(2026, 12, 2)
NOT_COUNTED = "tpu-ray:platform"


def warned(spec: StackSpec, today: date = TODAY) -> dict[str, str]:
    """Key to reason, without what is never counted; a key with two warnings would fail here."""
    found = [warn for warn in plan("s", spec, today, known).warnings if warn.key != NOT_COUNTED]
    assert len({warn.key for warn in found}) == len(found)
    return {warn.key: warn.reason for warn in found}


def test_a_stack_that_fits_warns_of_nothing_but_what_is_not_counted() -> None:
    spec = stack([pool("chat", slices={"min": 1, "max": 2})], [service("chat", "chat")])
    (only,) = plan("s", spec, TODAY, known).warnings
    assert only.key == NOT_COUNTED
    for part in ("fee for the cluster", "nodes without chips", "disks", "traffic"):
        assert part in only.reason


def test_kept_slices_that_no_service_uses_are_told_in_chips_and_dollars() -> None:
    # 3 kept, 1 used: 2 slices of 4 chips at 2.70 are 21.60 an hour.
    found = warned(stack([pool("chat", slices=3)], [service("chat", "chat")]))
    assert list(found) == ["tpu-ray:pools[0].slices.min"]
    assert "2 slices (8 chips, $21.60 an hour)" in found["tpu-ray:pools[0].slices.min"]


def test_a_kept_slice_that_only_jobs_use_is_idle() -> None:
    found = warned(stack([pool("train", "4x4", slices=1)], jobs=[JOB]))
    assert "1 slice (16 chips, $43.20 an hour) is billed" in found["tpu-ray:pools[0].slices.min"]


def test_a_pool_that_is_never_at_its_least_is_told() -> None:
    found = warned(stack([pool("chat", slices={"min": 0, "max": 4})], [service("chat", "chat", replicas=2)]))
    assert "never at its least of 0: 8 chips, $21.60 an hour" in found["tpu-ray:pools[0].slices.min"]


def test_a_range_of_replicas_is_billed_at_its_least_and_saves_what_the_pool_lets_go() -> None:
    replicas = {"min": 1, "max": 3}
    right = stack([pool("chat", slices={"min": 1, "max": 6})], [service("chat", "chat", replicas=replicas)])
    assert warned(right) == {}
    # Two of the three kept slices have no replica while there is little to do.
    found = warned(stack([pool("chat", slices={"min": 3, "max": 6})], [service("chat", "chat", replicas=replicas)]))
    assert list(found) == ["tpu-ray:pools[0].slices.min", "tpu-ray:services[0].replicas"]
    assert (
        "services use 1 to 3 of the 3 slices that are kept; 2 slices (8 chips" in found["tpu-ray:pools[0].slices.min"]
    )
    assert "saves nothing while pool chat keeps 3 slices; with slices.min 1" in found["tpu-ray:services[0].replicas"]
    # Of the least alone it is known that it is always used.
    found = warned(stack([pool("chat", slices={"min": 0, "max": 6})], [service("chat", "chat", replicas=replicas)]))
    assert "never at its least of 0: 4 chips, $10.80 an hour" in found["tpu-ray:pools[0].slices.min"]


def test_a_service_that_is_replaced_is_told_with_the_slices_that_would_help() -> None:
    found = warned(stack([pool("chat", slices=2)], [service("chat", "chat", replicas=2)]))
    assert "replaces chat" in found["tpu-ray:services[0].pool"]
    assert "slices.max 4" in found["tpu-ray:services[0].pool"]


def test_a_service_on_spot_has_outages() -> None:
    spec = stack([pool("chat", capacity="spot", slices={"min": 1, "max": 2})], [service("chat", "chat")])
    found = warned(spec, date(2026, 6, 4))
    assert list(found) == ["tpu-ray:services[0].pool"]
    assert "30 seconds" in found["tpu-ray:services[0].pool"]


def test_a_job_on_spot_that_is_not_restarted_is_told_and_a_restarted_one_is_not() -> None:
    spot = pool("train", "4x4", capacity="spot", slices={"min": 0, "max": 1})
    once = stack([spot], jobs=[{**JOB, "max_failures": 0}])
    assert list(warned(once, date(2026, 6, 4))) == ["tpu-ray:jobs[0].max_failures"]
    assert warned(stack([spot], jobs=[JOB]), date(2026, 6, 4)) == {}


def test_lent_machines_are_taken_back() -> None:
    lent = pool("train", "4x4", capacity="flex-start", slices={"min": 0, "max": 1}, max_run_s=7200)
    found = warned(stack([lent], jobs=[{**JOB, "timeout_s": 7200}]), date(2026, 9, 11))
    assert list(found) == ["tpu-ray:pools[0].capacity"]
    assert "2 hours" in found["tpu-ray:pools[0].capacity"]


def test_a_run_that_may_outlast_its_machine_is_told() -> None:
    lent = pool("train", "4x4", capacity="flex-start", slices={"min": 0, "max": 1}, max_run_s=3600)
    found = warned(stack([lent], jobs=[{**JOB, "timeout_s": 7200}]), date(2026, 9, 11))
    assert "2 hours, but pool train keeps a machine for 1 hour only" in found["tpu-ray:jobs[0].timeout_s"]


def test_a_week_is_the_most_where_nothing_is_written() -> None:
    lent = pool("train", "4x4", capacity="flex-start", slices={"min": 0, "max": 1})
    found = warned(stack([lent], jobs=[{**JOB, "timeout_s": 691200}]), date(2026, 9, 11))
    assert "8 days" in found["tpu-ray:jobs[0].timeout_s"]
    assert "7 days" in found["tpu-ray:pools[0].capacity"]


def test_an_old_price_is_told_once_with_its_day_and_its_page() -> None:
    pools = [pool(name, slices={"min": 1, "max": 2}) for name in ("a", "b", "c", "d", "e")]
    spec = stack(pools, [service(name, name) for name in ("a", "b", "c", "d", "e")])
    found = warned(spec, date(2028, 1, 1))
    assert list(found) == ["tpu-ray:pools[0].usd_per_chip_hour"]
    (reason,) = found.values()
    for part in ("2026-09-17", "471 days ago", "https://cloud.google.com/tpu/pricing", "pools a, b, c and 2 more"):
        assert part in reason


def test_an_announced_change_of_price_is_told() -> None:
    lent = pool("train", "4x4", capacity="flex-start", slices={"min": 0, "max": 1})
    found = warned(stack([lent], jobs=[JOB]), TODAY)
    assert "other prices from 2026-11-01" in found["tpu-ray:pools[0].usd_per_chip_hour"]


def test_a_reservation_names_what_commitments_cost() -> None:
    reserved = pool("chat", capacity="reservation", reservation="mine", slices={"min": 1, "max": 2})
    found = warned(stack([reserved], [service("chat", "chat")]))
    assert "$1.89 for 1 year (read 2026-09-17), $1.22 for 3 years" in found["tpu-ray:pools[0].usd_per_chip_hour"]
    priced = {**reserved, "usd_per_chip_hour": 1.3}
    assert warned(stack([priced], [service("chat", "chat")])) == {}


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ({"image": "ghcr.io/me/a:1"}, "write ghcr.io/me/a:1@sha256:<the digest that `docker push` printed>"),
        ({"image": f"ghcr.io/me/a:1@sha256:{'0' * 64}"}, "these zeros stand for the image's digest"),
        ({"image": "ghcr.io/me/a:1", "code": "archive"}, ""),
        ({"image": f"ghcr.io/me/a@sha256:{'0' * 63}1"}, ""),
    ],
)
def test_code_in_an_image_that_may_become_another_is_told(platform: dict[str, object], words: str) -> None:
    spec = stack([pool("chat", slices={"min": 1, "max": 2})], [service("chat", "chat")], platform=platform)
    reason = warned(spec).get("tpu-ray:platform.image", "")
    assert words in reason
    assert bool(words) == bool(reason)
