"""Which test is about which refusal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.held import Thing
from tests.rig.cloud.refused import Refused, RefusedPartially
from tests.rig.gcp.values import Object

Test = Callable[[Path], None]
TESTS: dict[str, tuple[Callable[..., None], Test]] = {}
"""Rule and test, by `module.rule`."""


def rule_name(rule: Callable[..., object]) -> str:
    return f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}"


def of(rule: Callable[..., None]) -> Callable[[Test], Test]:
    """Say that a test is the one of a rule."""

    def noted(test: Test) -> Test:
        TESTS[rule_name(rule)] = (rule, test)
        return test

    return noted


def refusal(cloud: Cloud, token: str, inputs: Object) -> str:
    """What Google says to inputs that it refuses; nothing is made of them."""
    before = _there(cloud, token)
    with pytest.raises(Refused) as caught:
        cloud.create(token, inputs)
    assert _there(cloud, token) == before
    assert not isinstance(caught.value, RefusedPartially)
    return str(caught.value)


def _there(cloud: Cloud, token: str) -> dict[str, Thing]:
    with cloud.held.change() as things:
        return things.every(token)


def half_done(cloud: Cloud, token: str, inputs: Object) -> str:
    """What Google says where it began and failed; what it began is there."""
    with pytest.raises(RefusedPartially) as caught:
        cloud.create(token, inputs)
    assert cloud.read(token, caught.value.id) == caught.value.outputs
    return str(caught.value)


def refused_change(cloud: Cloud, token: str, id: str, changed: Object) -> str:
    """What Google says to a change that it refuses; the resource stays as it was."""
    before = cloud.read(token, id)
    with pytest.raises(Refused) as caught:
        cloud.update(token, id, changed)
    assert cloud.read(token, id) == before
    return str(caught.value)


def refused_delete(cloud: Cloud, token: str, id: str) -> str:
    """What Google says to the deletion of something that is needed; it stays."""
    state = cloud.read(token, id)
    assert state is not None
    with pytest.raises(Refused) as caught:
        cloud.delete(token, id, state)
    assert cloud.read(token, id) == state
    return str(caught.value)
