"""Every observed plan result of the provider, replayed on the stand-in."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.gcp_provider.probe_bases import BASE, CREATES, INLINE_POOL, Edit
from tests.gcp_provider.probe_edits import EDITS, STATE
from tests.rig.gcp.catalogue import DATA, Property, load_catalogue, property_at
from tests.rig.gcp.check import check_inputs
from tests.rig.gcp.compare import Change
from tests.rig.gcp.diff import plan_create, plan_update
from tests.rig.gcp.plan import without_marks
from tests.rig.gcp.rules import PlanError
from tests.rig.gcp.settings import Settings
from tests.rig.gcp.values import (
    UNKNOWN,
    Object,
    Path,
    Value,
    format_path,
    is_zero,
    parse_path,
    plain_object,
    with_path,
)

CASES: list[dict[str, Any]] = json.loads((DATA / "probes.json").read_text())["cases"]
SETTINGS = Settings(project="proj", region="us-central1")
RESOURCES = load_catalogue().resources


def edited(value: Object, edit: Edit) -> Object:
    """A copy with the edit done."""
    for path, new in edit:
        value = with_path(value, parse_path(path), new)
    return value


def state_after_create(planned: Value) -> Value:
    """The plan with its unknowns empty, as the observed plans' states were made."""
    if isinstance(planned, dict):
        return {name: state_after_create(item) for name, item in planned.items() if item is not UNKNOWN}
    if isinstance(planned, list):
        return [state_after_create(item) for item in planned]
    return planned


def as_terraform(fields: Mapping[str, Property], value: Object) -> dict[str, Any]:
    """A plan in the form of the observations: Terraform's names, `<computed>`, and nothing that is zero."""
    result: dict[str, Any] = {}
    for name, item in value.items():
        prop = fields[name]
        shown: Any = item
        if item is UNKNOWN:
            # An unknown number, list or block is the same as none in the observations.
            shown = "<computed>" if prop.kind == "string" else None
        elif prop.kind == "object":
            shown = [as_terraform(prop.fields, plain_object(item))]
        elif prop.fields and isinstance(item, list):
            shown = [as_terraform(prop.fields, plain_object(part)) for part in item]
        elif prop.kind == "map":
            shown = {key.replace("goog-pulumi-", "goog-terraform-"): part for key, part in plain_object(item).items()}
        if not is_zero(shown):
            result[prop.tf_name] = shown
    return result


def without_zeros(value: Any) -> Any:
    """An observed state without what is zero."""
    if isinstance(value, dict):
        return {name: cleaned for name, item in value.items() if not is_zero(cleaned := without_zeros(item))}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


def as_observed(fields: Mapping[str, Property], change: Change) -> str:
    """A change's path in the observations' form: maps and sets as a whole, and lists that grow or shrink."""
    path: Path = change.path
    for end in range(1, len(path)):
        prop = property_at(fields, path[:end])
        if prop is not None and (prop.kind == "map" or prop.unordered) and len(path) > end:
            return format_path(path[:end])
    if isinstance(path[-1], int) and change.kind != "update":
        return format_path(path[:-1])
    return format_path(path)


def creates(case: dict[str, Any]) -> Object:
    """A create case's inputs."""
    return CREATES.get(case["resource"], {}).get(case["case"]) or BASE[case["resource"]]


IDS = [f"{number}-{case['resource'].split(':')[-1]}-{case['case']}" for number, case in enumerate(CASES)]


def test_all_observations_are_replayed() -> None:
    assert len(CASES) == 276
    changing = [case for case in CASES if "changed" in case]
    assert [case["case"] for case in changing if case["case"] not in EDITS[case["resource"]]] == []
    creating = [case for case in CASES if "changed" not in case and not case["case"].startswith("create-plan")]
    assert [case["case"] for case in creating if case["case"] not in CREATES[case["resource"]]] == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_stand_in_plans_what_was_observed(case: dict[str, Any]) -> None:
    kind = RESOURCES[case["resource"]]
    if case["result"] == "ERROR" and case["phase"] == "check":
        failures = check_inputs(kind, "it", creates(case), {}).failures
        assert any(case["message"] in reason.replace("arguments. ", "arguments ") for reason in failures), failures
    elif case["result"] == "ERROR":
        checked = check_inputs(kind, "it", creates(case), {})
        assert checked.failures == []
        with pytest.raises(PlanError) as refused:
            plan_create(kind, checked.inputs, SETTINGS)
        assert case["message"] in str(refused.value)
    elif case["result"] == "CREATE":
        planned = {"id": UNKNOWN, **plan_create(kind, creates(case), SETTINGS)}
        shown = as_terraform({**kind.properties, "id": Property("id", "id", "string")}, planned)
        assert shown == without_zeros(case["plannedTfState"])
    else:
        replay_edit(case)


def replay_edit(case: dict[str, Any]) -> None:
    """Make the resource, edit it, and compare what changes."""
    token, name = case["resource"], case["case"]
    kind = RESOURCES[token]
    base = BASE[token]
    if name.startswith("inline nodePools"):
        base = {
            **{key: value for key, value in base.items() if key != "removeDefaultNodePool"},
            "nodePools": INLINE_POOL,
        }
    state = plain_object(state_after_create(plan_create(kind, base, SETTINGS)))
    state = edited(state, STATE.get(token, {}).get(name, []))
    plan = plan_update(kind, without_marks(edited(base, EDITS[token][name])), state, SETTINGS)
    seen = {as_observed(kind.properties, change) for change in plan.changes}
    assert seen == set(case["changed"])
    result = "REPLACE" if plan.replaces else "UPDATE" if plan.changes else "NO-DIFF"
    assert result == case["result"]
    forcing = {as_observed(kind.properties, change) for change in plan.changes if change.forces}
    expected = {
        shown
        for shown in seen
        if any(path == shown or path.startswith((shown + ".", shown + "[")) for path in case.get("replacePaths", []))
    }
    assert forcing == expected
