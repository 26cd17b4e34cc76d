"""The plan says of every edit what the engine does: its words beside the table that is held by the real engine."""

import re
from datetime import date

import pytest

from infra.plan.against import Comparison, against
from infra.plan.markdown import comparison_page
from infra.stack import parse_stack
from tests.gke.edit import Edit, start
from tests.gke.edits import EDITS

WORDS = {"create": "created", "delete": "deleted", "replace": "replaced", "update": "updated"}
CPU_POOL = "cpu"
"""The node pool without chips, of which the plan says nothing."""


def compared(edit: Edit) -> Comparison:
    config = start()
    edit.change(config)
    return against("dev", "main", parse_stack(start()), parse_stack(config), date(2026, 12, 2))


def on_the_engine(edit: Edit) -> dict[str, str]:
    """What the table says of each node pool of slices; those that it does not name stay the same."""
    found = (re.fullmatch(r"(\w+) NodePool ([^:]+)(: .*)?", line) for line in edit.expected)
    return {match[2]: WORDS[match[1]] for match in found if match and match[2] != CPU_POOL}


def in_the_plan(edit: Edit) -> dict[str, str]:
    told = [made for change in compared(edit).changes for made in change.node_pools]
    names = [made.name for made in told]
    assert len(names) == len(set(names))
    empty = edit.keys.endswith(", while it has no node")
    words = {made.name: made.fate for made in told}
    assert not empty or "replaced-if-empty" in words.values()
    return {
        name: "replaced" if empty and fate == "replaced-if-empty" else fate
        for name, fate in words.items()
        if fate != "same"
    }


def replaces_cluster(edit: Edit) -> bool:
    return any(line.startswith("replace Cluster ") for line in edit.expected)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_the_plan_and_the_engine_say_the_same_of_every_node_pool(edit: Edit) -> None:
    assert in_the_plan(edit) == on_the_engine(edit)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_the_plan_and_the_engine_say_the_same_of_the_cluster(edit: Edit) -> None:
    change = compared(edit).cluster
    assert change.fate == ("replaced" if replaces_cluster(edit) else "same")
    assert bool(change.keys) == replaces_cluster(edit)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_a_pull_request_says_in_bold_what_loses_its_hosts(edit: Edit) -> None:
    """Whole pools by name; not a pool that is replaced while it has no host."""
    lines = comparison_page(compared(edit)).splitlines()
    bold = "\n".join(line for line in lines if line.startswith("**"))
    assert ("The cluster is deleted and made anew" in bold) == replaces_cluster(edit)
    empty = edit.keys.endswith(", while it has no node")
    losing = {name.rpartition("-")[0] for name, word in on_the_engine(edit).items() if word in ("replaced", "deleted")}
    shrunk = {"wide"} if edit.keys == "pools wide: slices {min: 1, max: 3} -> 2" else set()
    pools = re.findall(r"\*\*(?:TPU|There).* in \d+ pools?: (.*)\.\*\*", bold)
    assert {name for line in pools for name in line.split(", ")} == (set() if empty else losing | shrunk)


def test_the_table_has_every_fate_of_a_node_pool() -> None:
    assert {word for edit in EDITS for word in on_the_engine(edit).values()} == set(WORDS.values())
