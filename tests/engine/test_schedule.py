"""Whose turn it is, without any device."""

import pytest

from workloads.serve.engine import Sampling
from workloads.serve.schedule import Decode, Prefill, Schedule


def test_a_long_prompt_and_running_requests_take_turns() -> None:
    schedule = Schedule(slots=2, context=100, buckets=(4, 8))
    schedule.add("short", [1, 2, 3], Sampling(max_tokens=9))
    schedule.add("long", range(20), Sampling(max_tokens=9))
    turns: list[object] = []
    for _ in range(7):
        work = schedule.next()
        if isinstance(work, Prefill):
            turns.append((work.request.request_id, work.start, len(work.tokens), work.bucket, work.last))
            if work.last:
                work.request.took(0)
        elif isinstance(work, Decode):
            turns.append([request.request_id for request in work.requests])
    assert turns == [
        ("short", 0, 3, 4, True),
        ["short"],
        ("long", 0, 8, 8, False),
        ["short"],
        ("long", 8, 8, 8, False),
        ["short"],
        ("long", 16, 4, 4, True),
    ]


def test_slots_are_taken_in_order_and_given_back() -> None:
    schedule = Schedule(slots=1, context=100, buckets=(8,))
    for name in "abc":
        schedule.add(name, [1], Sampling(max_tokens=1))
    assert isinstance(schedule.next(), Prefill)
    assert (schedule.running, schedule.waiting) == (1, 2)
    assert schedule.remove("b")
    assert schedule.remove("a")
    assert not schedule.remove("a")
    work = schedule.next()
    assert isinstance(work, Prefill)
    assert (work.request.request_id, work.request.slot) == ("c", 0)


def test_buckets_beyond_the_context_are_the_context() -> None:
    assert Schedule(slots=1, context=100, buckets=(64, 256, 1024)).buckets == (64, 100)


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "said"), [([], 1, "empty"), ([1], 0, "below 1"), ([1] * 90, 11, "context of 100")]
)
def test_what_cannot_run_is_refused(prompt: list[int], max_tokens: int, said: str) -> None:
    schedule = Schedule(slots=1, context=100, buckets=(8,))
    with pytest.raises(ValueError, match=said):
        schedule.add("x", prompt, Sampling(max_tokens=max_tokens))
    schedule.add("x", [1], Sampling(max_tokens=1))
    with pytest.raises(ValueError, match="here already"):
        schedule.add("x", [1], Sampling(max_tokens=1))
