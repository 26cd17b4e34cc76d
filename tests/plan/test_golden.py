"""The plans of the stack files that users start from, as they are printed."""

import pytest

from tests.plan.golden import FOLDER, STACKS, output


@pytest.mark.parametrize("stack", STACKS)
def test_the_plan_of_a_stack_is_printed_as_it_was(stack: str) -> None:
    assert output(stack) == (FOLDER / f"{stack}.txt").read_text(), "right? then: python -m tests.plan.golden"
