"""What an edit of the stack file does to every resource, and in which order."""

from collections.abc import Iterator

import pytest

from infra.automation.operate import Outcome
from tests.gke.edit import Edit, start
from tests.gke.edits import EDITS
from tests.rig.gke import WORKLOADS, GkeCheckout, steps
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

RESERVED = [{"name": "held", "zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": 64}]
NOISE = "nodeConfig.resourceManagerTags"
"""Computed, so that it is named beside every other difference of a node's configuration."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GkeCheckout]:
    folder = tmp_path_factory.mktemp("edits")
    with operated(folder / "plane") as plane:
        made = GkeCheckout(folder, "dev", plane, config=start(), reservations=RESERVED)
        assert made.operate("up").ok
        yield made


def told(outcome: Outcome) -> set[str]:
    """One line for each resource that does not stay as it is."""
    lines: dict[str, str] = {}
    for step in outcome.steps:
        operation, resource = step["op"], step["resource"]
        if operation in ("same", "read", "refresh", "create-replacement", "delete-replaced"):
            continue
        if resource.startswith(WORKLOADS):
            continue
        keys = {".".join(key.split(".")[:2]) for key in step["keys"].split(", ") if key and key != NOISE}
        shown = f": {', '.join(sorted(keys))}" if keys and operation in ("update", "replace") else ""
        lines[resource] = f"{operation} {resource}{shown}"
    return set(lines.values())


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_an_edit_does_what_the_table_says(stack: GkeCheckout, edit: Edit) -> None:
    config = start()
    edit.change(config)
    outcome = stack.with_config(config).operate("preview")
    assert outcome.ok, outcome.failures
    assert told(outcome) == set(edit.expected)
    assert_old_before_new(outcome)


def assert_old_before_new(outcome: Outcome) -> None:
    """Quota and reservation hold one set of machines, and names are taken: what is replaced at Google goes first.

    Where the cluster goes, its pools go before it and come after it.
    """
    done = [(step["op"], step["resource"]) for step in outcome.steps]
    unnamed = ("BucketIAMMember ", "Namespace ", "ServiceAccount ", "NetworkPolicy ", "PodDisruptionBudget ")
    replaced = [name for operation, name in done if operation == "replace" and not name.startswith(unnamed)]
    for name in replaced:
        assert done.index(("delete-replaced", name)) < done.index(("create-replacement", name)), done
    if "Cluster cluster" in replaced:
        for pool in (name for name in replaced if name.startswith("NodePool ")):
            order = [
                ("delete-replaced", pool),
                ("delete-replaced", "Cluster cluster"),
                ("create-replacement", "Cluster cluster"),
                ("create-replacement", pool),
            ]
            assert [done.index(step) for step in order] == sorted(done.index(step) for step in order)


def test_what_an_edit_does_is_really_done(stack: GkeCheckout) -> None:
    """Many edits at once, brought up: afterwards Google has what the file says, also when it is looked at again."""
    config = start()
    for edit in EDITS:
        if edit.together:
            edit.change(config)
    assert stack.with_config(config).operate("up").ok
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []
