"""The provider's resources, property by property, from `data/schema.json` (its `_meta` names the sources)."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rig.gcp.values import Value

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Property:
    """One property; names are Pulumi's, `tf_name` is Terraform's.

    `kind` is string, bool, int, number, map, object (a block that Pulumi shows as one object) or list; a list with
    `fields` holds objects. `unordered` lists and objects are Terraform sets. `update` is False where the provider has
    no call that would change the value in place.
    """

    name: str
    tf_name: str
    kind: str
    item_kind: str = "string"
    fields: "Mapping[str, Property]" = field(default_factory=dict)
    required: bool = False
    computed: bool = False
    output_only: bool = False
    force_new: bool = False
    unordered: bool = False
    update: bool | None = None
    deprecated: bool = False
    secret: bool = False
    default: Value = None
    suppress: str = ""
    conflicts: tuple[str, ...] = ()
    exactly_one: tuple[str, ...] = ()
    at_least_one: tuple[str, ...] = ()
    required_with: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    empty_refused: bool = False
    validation: str = ""
    pattern: str = ""
    least: int | None = None
    most: int | None = None
    max_items: int | None = None
    min_items: int | None = None
    items: "Property | None" = None

    @property
    def is_block(self) -> bool:
        """Whether Terraform has a nested block here, which cannot be told empty from absent."""
        return bool(self.fields)


@dataclass(frozen=True)
class Autoname:
    """How a name is made: the logical name, a hyphen and 7 hexadecimal digits, at most `longest` characters."""

    property: str
    longest: int
    lower: bool


@dataclass(frozen=True)
class ResourceType:
    """One resource; `labels` names the property that holds a program's labels, if it has any."""

    token: str
    tf_name: str
    properties: Mapping[str, Property]
    autoname: Autoname | None
    always_delete_first: bool
    schema_version: int
    timeouts: Mapping[str, str]
    id_format: str
    has_update: bool
    labels: str | None


@dataclass(frozen=True)
class Catalogue:
    """All resources by token, and each invoke's argument names with whether they are required."""

    resources: Mapping[str, ResourceType]
    invokes: Mapping[str, Mapping[str, bool]]


def _names(raw: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(raw.get(key, ()))


def _property(name: str, raw: dict[str, Any]) -> Property:
    items = raw.get("items") or "string"
    kind = raw["type"]
    # Two sets of one element are written with the kind of what they hold.
    if kind not in ("list", "object", "map") and raw.get("unordered"):
        kind, items = "list", kind
    item = None
    if "items_diffSuppress" in raw or "items_validation" in raw:
        item = Property(
            name=name,
            tf_name=raw["tfName"],
            kind="string",
            suppress=raw.get("items_diffSuppress", ""),
            validation=raw.get("items_validation", ""),
        )
    return Property(
        name=name,
        tf_name=raw.get("tfName", name),
        kind=kind,
        item_kind=items,
        fields={key: _property(key, value) for key, value in raw.get("fields", {}).items()},
        required=raw.get("required", False),
        computed=raw.get("computed", False),
        output_only=raw.get("outputOnly", False) or (raw.get("readOnly", False) and not raw.get("optional", False)),
        force_new=bool(raw.get("forceNew")),
        unordered=raw.get("unordered", False),
        update=raw.get("updateInPlace"),
        deprecated=raw.get("deprecated", False),
        secret=raw.get("secret", False),
        default=raw.get("default"),
        suppress=raw.get("diffSuppress", ""),
        conflicts=_names(raw, "conflictsWith"),
        exactly_one=_names(raw, "exactlyOneOf"),
        at_least_one=_names(raw, "atLeastOneOf"),
        required_with=_names(raw, "requiredWith"),
        enum=_names(raw, "enum"),
        empty_refused=raw.get("emptyStringRejected", False),
        validation=raw.get("validation", ""),
        pattern=raw.get("pattern", ""),
        least=raw.get("min"),
        most=raw.get("max"),
        max_items=raw.get("max_items"),
        min_items=raw.get("min_items"),
        items=item,
    )


def _resource(token: str, raw: dict[str, Any]) -> ResourceType:
    properties = {name: _property(name, value) for name, value in raw["properties"].items()}
    auto = raw.get("autoname")
    labels = None
    if "effectiveLabels" in properties:
        labels = "resourceLabels" if "resourceLabels" in properties else "labels"
    return ResourceType(
        token=token,
        tf_name=raw["tfName"],
        properties=properties,
        autoname=Autoname(auto["property"], auto["maxLength"], auto["transform"] == "lower") if auto else None,
        always_delete_first=raw["deleteBeforeReplace"] == "always",
        schema_version=raw["schemaVersion"],
        timeouts=raw["timeouts"],
        id_format=raw["idFormat"],
        has_update=raw["hasUpdate"],
        labels=labels,
    )


@functools.cache
def load_catalogue() -> Catalogue:
    """Read once per process."""
    raw = {**json.loads((DATA / "schema.json").read_text()), **json.loads((DATA / "bucket_object.json").read_text())}
    return Catalogue(
        resources={token: _resource(token, value) for token, value in raw.items() if "idFormat" in value},
        invokes={
            token: {name: arg["tfRequired"] for name, arg in value["args"].items()}
            for token, value in raw.items()
            if value.get("kind") == "invoke"
        },
    )


def property_at(fields: Mapping[str, Property], path: "tuple[str | int, ...]") -> Property | None:
    """The property a path leads to; an element of a list of objects is the list's property."""
    found: Property | None = None
    for step in path:
        if isinstance(step, int):
            continue
        if found is not None and not found.fields:
            return found
        found = (found.fields if found else fields).get(step)
        if found is None:
            return None
    return found
