"""A rule without a test is not in."""

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cloud import rules
from tests.rig.cloud import (
    invokes,
    refusals_capacity,
    refusals_cluster,
    refusals_network,
    refusals_others,
    refusals_pool,
    refusals_pool_shape,
)

HERE = Path(__file__).parent
MODULES = (
    refusals_capacity,
    refusals_cluster,
    refusals_network,
    refusals_others,
    refusals_pool,
    refusals_pool_shape,
)
TOGETHER = ("refuse_pool", "refuse_machines", "fail_operation", "fail_change", "refuse_change", "refuse_cluster")
"""What only asks several rules."""
SOURCES = (
    "https://",
    "reports on GitHub",
    "GoogleCloudPlatform/",
    "terraform-provider-",
    "Google's documentation",
)

for file in sorted(HERE.glob("test_refusals_*.py")):
    importlib.import_module(f"tests.cloud.{file.stem}")


def _rules() -> dict[str, Callable[..., object]]:
    found: list[Callable[..., object]] = [
        function
        for module in MODULES
        for _, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and function.__annotations__.get("return") is None
    ]
    found.append(invokes.cluster_not_found)
    return {rules.rule_name(rule): rule for rule in found if not rule.__name__.startswith(("_", *TOGETHER))}


def test_every_rule_has_its_test() -> None:
    assert sorted(rules.TESTS) == sorted(_rules())


@pytest.mark.parametrize("name", sorted(_rules()))
def test_a_rule_names_its_source(name: str) -> None:
    told = inspect.getdoc(_rules()[name]) or ""
    assert any(word in told for word in SOURCES)


@pytest.mark.parametrize("name", sorted(rules.TESTS))
def test_without_a_rule_its_test_fails(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, test = rules.TESTS[name]

    def nothing(*asked: object) -> None:
        pass

    monkeypatch.setattr(rule, "__code__", nothing.__code__)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(tmp_path)
