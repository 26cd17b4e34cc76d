"""What an edit does to jobs, in the plan's words: a run keeps what it was started with."""

from typing import Any

import pytest

from infra.plan.job_changes import MEANS, JobChange, job_changes
from infra.stack import parse_stack
from tests.render.stacks import GKE, config

JOB: dict[str, Any] = {"name": "train", "pool": "big", "run": "r7"}
POOL = {"name": "big", "generation": "v6e", "topology": "4x4"}
OWN = {**JOB, "entrypoint": "python my/train.py"}


def changed(
    before: dict[str, Any], after: dict[str, Any], pool: dict[str, Any] = POOL, **platform: object
) -> tuple[JobChange, ...]:
    was = parse_stack(config(pools=[POOL], services=[], jobs=[before]))
    now = parse_stack(config(pools=[pool], services=[], jobs=[after], platform={**GKE, **platform}))
    return job_changes(was, now)


@pytest.mark.parametrize(
    ("after", "fate", "keys"),
    [
        (JOB, "same", ()),
        # A default that is written out is no change.
        ({**JOB, "steps": 200, "data": {"seed": 0}}, "same", ()),
        ({**JOB, "run": "r8", "steps": 3}, "new run", ()),
        ({**JOB, "steps": 3}, "next run", ("steps",)),
        (
            {**JOB, "data": {"seed": 1}, "timeout_s": 60, "reserve_timeout_s": 60},
            "next run",
            ("data.seed", "reserve_timeout_s", "timeout_s"),
        ),
        (
            {**JOB, "env": {"A": "1"}, "retries": 2, "keep_cluster_s": 0},
            "next run",
            ("env.A", "retries", "keep_cluster_s"),
        ),
        (OWN, "next run", ("entrypoint",)),
        ({**JOB, "wait": True}, "same", ()),
        ({**JOB, "suspend": True}, "suspended", ()),
        ({**JOB, "suspend": True, "steps": 3}, "suspended", ("steps",)),
        ({**JOB, "schedule": "0 3 * * *"}, "scheduled", ()),
    ],
)
def test_a_run_follows_its_suspension_and_keeps_the_rest(
    after: dict[str, Any], fate: str, keys: tuple[str, ...]
) -> None:
    (found,) = changed(JOB, after)
    assert found.fate == fate
    assert set(found.keys) == set(keys)


def test_what_a_run_has_of_its_pool_and_platform_waits_too() -> None:
    (image,) = changed(JOB, JOB, image="us-docker.pkg.dev/my-project/ray/tpu-ray:0.2.0")
    assert (image.fate, image.keys) == ("next run", ("platform.image",))
    (pool,) = changed(JOB, JOB, pool={**POOL, "topology": "2x4", "machine_type": "ct6e-standard-4t"})
    assert (pool.fate, set(pool.keys)) == ("next run", {"pool.topology", "pool.machine_type"})


def test_a_schedule_follows_the_file_by_itself() -> None:
    nightly = {**JOB, "schedule": "0 3 * * *"}
    (found,) = changed(nightly, {**nightly, "schedule": "0 4 * * *", "steps": 3})
    assert (found.fate, found.keys) == ("next time", ("schedule", "steps"))
    (found,) = changed(nightly, {**nightly, "suspend": True})
    assert found.fate == "suspended"


def test_jobs_come_and_go_and_are_told_in_the_files_order() -> None:
    stacks = [
        parse_stack(config(pools=[POOL], services=[], jobs=[{**JOB, "name": name} for name in names]))
        for names in (("a", "b"), ("c", "b"))
    ]
    assert [(one.job, one.fate) for one in job_changes(*stacks)] == [("c", "added"), ("b", "same"), ("a", "removed")]
    assert [one.fate for one in job_changes(None, stacks[0])] == ["added", "added"]


def test_every_fate_has_words() -> None:
    (found,) = changed(JOB, {**JOB, "steps": 3})
    assert str(found) == "applies to the next run: write another `run:` (steps)"
    assert [fate for fate, words in MEANS.items() if not words] == ["same"]
