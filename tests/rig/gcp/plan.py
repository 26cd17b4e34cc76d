"""What a resource will look like after an apply: Terraform's planning with its old SDK, in Pulumi's shape."""

from collections.abc import Mapping

from tests.rig.gcp.alike import kept_resource_labels, suppressed
from tests.rig.gcp.catalogue import Property
from tests.rig.gcp.values import (
    DEFAULTS,
    UNKNOWN,
    Object,
    Path,
    Unknown,
    Value,
    at_path,
    expand_path,
    is_zero,
    parse_path,
    plain_object,
    with_path,
)


def plan_object(fields: Mapping[str, Property], wanted: Object, old: Object, creating: bool) -> Object:
    """One object's planned properties.

    Args:
        fields: the properties it may have.
        wanted: the program's inputs.
        old: its state; empty when it is made.
        creating: whether the resource is made now: then what the provider fills in is unknown.
    """
    planned: Object = {}
    for name, prop in fields.items():
        value = plan_value(prop, wanted.get(name), old.get(name), creating)
        if value is not None:
            planned[name] = value
    return planned


def plan_value(prop: Property, wanted: Value, old: Value, creating: bool) -> Value:
    """One property's planned value; None where it will have none."""
    if isinstance(wanted, Unknown):
        return UNKNOWN
    if prop.suppress == "containerNodePoolResourceLabelsDiffSuppress":
        wanted = kept_resource_labels(old, wanted)
    if wanted == [] or (wanted == {} and prop.kind == "map"):
        wanted = None
    if wanted is None and prop.default is not None:
        wanted = prop.default
    if wanted is None:
        return _plan_absent(prop, old, creating)
    if old is None and not creating and not isinstance(wanted, dict) and is_zero(wanted):
        return None
    if old is not None and prop.suppress and suppressed(prop.suppress, old, wanted):
        return old
    if isinstance(wanted, dict):
        if not prop.fields:
            return old if old == wanted else wanted
        return plan_object(prop.fields, wanted, plain_object(old), creating)
    if isinstance(wanted, list):
        return _plan_list(prop, wanted, old if isinstance(old, list) else [], creating)
    return old if old == wanted else wanted


def _plan_absent(prop: Property, old: Value, creating: bool) -> Value:
    if prop.computed or prop.output_only:
        return UNKNOWN if creating else old
    if is_zero(old) or suppressed(prop.suppress, old, None):
        return old
    return None


def _plan_list(prop: Property, wanted: "list[Value]", old: "list[Value]", creating: bool) -> Value:
    if not prop.fields:
        if prop.items is not None:
            wanted = [_as_in_state(prop.items, item, old) for item in wanted]
        if prop.unordered and _same_members(wanted, old):
            return old
        return old if wanted == old else wanted
    if prop.unordered:
        planned = [_plan_member(prop, item, old, creating) for item in wanted]
        return old if _same_members(planned, old) else planned
    if prop.name == "secondaryIpRanges":
        wanted = _in_order_of(old, wanted)
    return [
        UNKNOWN
        if isinstance(item, Unknown)
        else plan_object(
            prop.fields, plain_object(item), plain_object(old[index] if index < len(old) else None), creating
        )
        for index, item in enumerate(wanted)
    ]


def _as_in_state(prop: Property, item: Value, old: "list[Value]") -> Value:
    return next((other for other in old if suppressed(prop.suppress, other, item)), item)


def _plan_member(prop: Property, item: Value, old: "list[Value]", creating: bool) -> Value:
    if isinstance(item, Unknown):
        return UNKNOWN
    for other in old:
        if plan_object(prop.fields, plain_object(item), plain_object(other), False) == other:
            return other
    return plan_object(prop.fields, plain_object(item), {}, creating)


def _same_members(new: "list[Value]", old: "list[Value]") -> bool:
    return len(new) == len(old) and all(item in old for item in new) and all(item in new for item in old)


def _in_order_of(old: "list[Value]", new: "list[Value]") -> "list[Value]":
    """A subnetwork's ranges have no order: those that are there stay where they are."""
    places = {plain_object(item).get("rangeName"): index for index, item in enumerate(old)}
    return sorted(new, key=lambda item: places.get(plain_object(item).get("rangeName"), len(places)))


def keep_ignored(planned: Object, old: Object, paths: "list[str]") -> Object:
    """The plan with the state's values wherever `ignoreChanges` says so.

    A path that leads nowhere in the state is dropped, as the bridge does.
    """
    for text in paths:
        for path in expand_path(parse_path(text), old, planned):
            if at_path(old, path[:-1]) is not None or len(path) == 1:
                planned = with_path(planned, path, at_path(old, path))
    return planned


def without_marks(inputs: Object) -> Object:
    """Inputs without the bridge's own keys (`__defaults`), at every level."""
    clean: Object = {}
    for name, value in inputs.items():
        if name == DEFAULTS or name.startswith("__"):
            continue
        if isinstance(value, dict):
            clean[name] = without_marks(value)
        elif isinstance(value, list):
            clean[name] = [without_marks(item) if isinstance(item, dict) else item for item in value]
        else:
            clean[name] = value
    return clean


def changed_names(planned: Object, old: Object) -> set[str]:
    """Top-level properties whose planned value is another than the state's."""
    return {name for name in planned.keys() | old.keys() if planned.get(name) != old.get(name)}


def lead_to(path: Path, other: Path) -> bool:
    """Whether `other` is the path or lies below it."""
    return other[: len(path)] == path
