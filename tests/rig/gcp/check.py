"""Check: inputs with the provider's defaults, or why the provider refuses them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.rig.gcp.catalogue import Property, ResourceType
from tests.rig.gcp.naming import NamingError, Proposal, make_name
from tests.rig.gcp.validators import refusals
from tests.rig.gcp.values import (
    DEFAULTS,
    UNKNOWN,
    Object,
    Path,
    Unknown,
    Value,
    format_path,
    is_zero,
    plain_list,
    plain_object,
)


@dataclass(frozen=True)
class Checked:
    """The inputs with defaults, and the reasons against them."""

    inputs: Object
    failures: list[str]


@dataclass
class Checking:
    """One Check of one resource; `logical` is the name in the program."""

    kind: ResourceType
    logical: str
    news: Object
    failures: list[str] = field(default_factory=list)

    def refuse(self, path: Path, reason: str) -> None:
        """Note a failure the way the bridge words it."""
        self.failures.append(f"{reason}. Examine values at '{self.logical}.{format_path(path)}'.")

    def fields(self, fields: Mapping[str, Property], value: Object, path: Path, tf: str) -> None:
        """Check one object: unknown and missing properties, each value, and what excludes what."""
        for name in value:
            if name not in fields and not name.startswith("__"):
                self.refuse((*path, name), "Invalid or unknown key")
        for name, prop in fields.items():
            item = value.get(name)
            where, tf_path = (*path, name), tf + prop.tf_name
            if item is None:
                if prop.required:
                    self.failures.append(f"Missing required property '{format_path(where)}'")
            elif prop.output_only:
                self.refuse(
                    where,
                    f'Value for unconfigurable attribute. Can\'t configure a value for "{tf_path}": its value will be '
                    "decided automatically based on the result of applying this configuration.",
                )
            elif not isinstance(item, Unknown):
                self.value(prop, item, where, tf_path)
            self.exclusions(prop, item, where, tf_path)

    def value(self, prop: Property, value: Value, path: Path, tf: str) -> None:
        """Check one value's type and content."""
        if isinstance(value, Unknown):
            return
        if prop.kind == "object":
            if not isinstance(value, dict):
                self._wrong_type(prop, value, path, "object")
            else:
                self.fields(prop.fields, value, path, f"{tf}.0.")
        elif prop.kind == "list":
            self.items(prop, value, path, tf)
        elif prop.kind == "map":
            if not isinstance(value, dict):
                self._wrong_type(prop, value, path, "map")
        elif not _fits(prop.kind, value):
            self._wrong_type(prop, value, path, prop.kind)
        else:
            for reason in refusals(prop, value, tf):
                self.refuse(path, reason)

    def items(self, prop: Property, value: Value, path: Path, tf: str) -> None:
        """Check a list: how many, and each."""
        if not isinstance(value, list):
            self._wrong_type(prop, value, path, "list")
            return
        if prop.max_items is not None and len(value) > prop.max_items:
            self.refuse(path, f"Too many list items. {tf}: no more than {prop.max_items} allowed, got {len(value)}")
        if prop.min_items is not None and len(value) < prop.min_items:
            self.refuse(path, f"Not enough list items. {tf}: at least {prop.min_items} required, got {len(value)}")
        for index, item in enumerate(value):
            where = (*path, index)
            if isinstance(item, Unknown):
                continue
            if prop.fields and not isinstance(item, dict):
                self._wrong_type(prop, item, where, "object")
            elif isinstance(item, dict) and prop.fields:
                self.fields(prop.fields, item, where, f"{tf}.{index}.")
            elif prop.items is not None:
                for reason in refusals(prop.items, item, f"{tf}.{index}"):
                    self.refuse(where, reason)

    def exclusions(self, prop: Property, value: Value, path: Path, tf: str) -> None:
        """Check what may not, and what must, go together."""
        if value is not None:
            for other in prop.conflicts:
                found = self._given(other, path)
                if found is not None and found is not UNKNOWN:
                    tf_other = self._tf_name(other)
                    self.refuse(path, f'Conflicting configuration arguments. "{tf}": conflicts with {tf_other}')
                    break
            for other in prop.required_with:
                if self._given(other, path) is None:
                    self.refuse(path, f'Missing required argument. "{tf}": all of `{self._tf_name(other)}` are needed')
        for group, exactly in ((prop.exactly_one, True), (prop.at_least_one, False)):
            if not group or group[0].split(".")[-1] != prop.name:
                continue
            given = [name for name in group if self._given(name, path) is not None]
            names = ",".join(self._tf_name(name) for name in group)
            if not given:
                head = "Invalid combination of arguments" if exactly else "Missing required argument"
                self.refuse(path, f'{head}. "{tf}": one of `{names}` must be specified')
            elif exactly and len(given) > 1:
                both = ",".join(self._tf_name(name) for name in given)
                reason = f'"{tf}": only one of `{names}` can be specified, but `{both}` were specified.'
                self.refuse(path, f"Invalid combination of arguments. {reason}")

    def _given(self, dotted: str, near: Path) -> Value:
        """What the program wrote at a property named from the top; inside a list, in the element that is checked."""
        steps = dotted.split(".")
        value: Value = self.news
        at: Path = ()
        for step in steps:
            value = plain_object(value).get(step)
            at = (*at, step)
            if isinstance(value, list) and step != steps[-1]:
                index = near[len(at)] if near[: len(at)] == at and len(near) > len(at) else 0
                value = value[index] if isinstance(index, int) and index < len(value) else None
                at = (*at, index)
        # Terraform cannot tell an empty block from none.
        return None if value in ([], {}) and steps else value

    def _tf_name(self, dotted: str) -> str:
        fields, names = self.kind.properties, []
        for step in dotted.split("."):
            prop = fields.get(step)
            names.append(prop.tf_name if prop else step)
            fields = prop.fields if prop else {}
        return ".0.".join(names)

    def _wrong_type(self, prop: Property, value: Value, path: Path, wanted: str) -> None:
        self.refuse(path, f"Incorrect attribute value type. {prop.tf_name}: a {wanted} is required, got {value!r}")


def _fits(kind: str, value: Value) -> bool:
    """Whether Terraform takes a value for this kind; numbers and words are turned into each other."""
    if isinstance(value, (dict, list)):
        return False
    if kind in ("int", "number"):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return False
        return not isinstance(value, bool)
    return kind != "bool" or isinstance(value, bool) or value in ("true", "false")


def check_inputs(
    kind: ResourceType, logical: str, news: Object, olds: Object, seed: bytes = b"", proposal: Proposal | None = None
) -> Checked:
    """Check a resource's inputs.

    Args:
        kind: the resource's type.
        logical: its name in the program.
        news: the program's inputs.
        olds: the inputs as they were checked last, with their `__defaults`; empty for a new resource.
        seed: where a name's digits come from.
        proposal: the engine's own name, if its autonaming is configured.
    """
    checking = Checking(kind, logical, news)
    checking.fields(kind.properties, news, (), "")
    inputs = with_defaults(kind.properties, news, olds, news)
    auto = kind.autoname
    if auto is not None and news.get(auto.property) is None and not checking.failures:
        carried = olds.get(auto.property) if auto.property in plain_list(olds.get(DEFAULTS)) else None
        try:
            inputs[auto.property] = carried or make_name(auto, kind.token, logical, seed, proposal)
        except NamingError as refused:
            checking.failures.append(str(refused))
        else:
            made = inputs[auto.property]
            named = kind.properties[auto.property]
            for reason in refusals(named, made, named.tf_name):
                checking.refuse((auto.property,), reason)
            inputs[DEFAULTS] = _sorted([*plain_list(inputs[DEFAULTS]), auto.property])
    return Checked(inputs, checking.failures)


def with_defaults(fields: Mapping[str, Property], news: Object, olds: Object, top: Object) -> Object:
    """Inputs with defaults that are not false, 0 or empty, and with `__defaults` at every object."""
    filled: Object = {}
    marks: list[str] = []
    old_marks = plain_list(olds.get(DEFAULTS))
    for name, value in news.items():
        prop = fields.get(name)
        filled[name] = value if prop is None or not prop.fields else _nested(prop, value, olds.get(name), top)
    for name, prop in fields.items():
        if name in news or prop.output_only:
            continue
        if name in old_marks and prop.default is not None and olds.get(name) is not None:
            filled[name] = olds[name]
            marks.append(name)
        elif not is_zero(prop.default) and not _hindered(prop, news, top):
            filled[name] = prop.default
            marks.append(name)
    filled[DEFAULTS] = _sorted(marks)
    return filled


def _sorted(marks: "Iterable[Value]") -> "list[Value]":
    names: list[Value] = []
    names.extend(sorted(str(mark) for mark in marks))
    return names


def _nested(prop: Property, value: Value, old: Value, top: Object) -> Value:
    if isinstance(value, dict):
        return with_defaults(prop.fields, value, plain_object(old), top)
    if isinstance(value, list):
        before = old if isinstance(old, list) else []
        return [
            with_defaults(prop.fields, item, plain_object(before[index] if index < len(before) else None), top)
            if isinstance(item, dict)
            else item
            for index, item in enumerate(value)
        ]
    return value


def _hindered(prop: Property, beside: Object, top: Object) -> bool:
    """Whether a default stays away: the property is deprecated, or something is set that it would conflict with."""
    if prop.deprecated and not prop.required:
        return True
    others = (*prop.conflicts, *(name for name in prop.exactly_one if name.split(".")[-1] != prop.name))
    return any((top.get(name) if "." not in name else beside.get(name.split(".")[-1])) is not None for name in others)
