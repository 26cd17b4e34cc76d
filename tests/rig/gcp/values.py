"""Pulumi property values as plain Python ones, and back.

A value is None, bool, int, float, str, list, dict or UNKNOWN. Secrets and outputs are opened when they come in: the
bridge does not accept them, so the engine marks what it knows to be secret itself.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from google.protobuf.struct_pb2 import (
    ListValue,
    NullValue,
    Struct,
)
from google.protobuf.struct_pb2 import Value as Wire

UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
DEFAULTS: Final = "__defaults"


class Unknown:
    """The type of UNKNOWN: a value that is known only after an apply."""

    def __repr__(self) -> str:
        return "UNKNOWN"


class Secret:
    """A value that the engine shall encrypt; only made for what goes out."""

    def __init__(self, value: "Value") -> None:
        self.value = value


UNKNOWN: Final = Unknown()
Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | Unknown | Secret | None
Object: TypeAlias = dict[str, Value]
Path: TypeAlias = tuple[str | int, ...]


def read_struct(struct: Struct) -> Object:
    """A message's properties as a dict; nulls are left out."""
    return {name: value for name, wire in struct.fields.items() if (value := read_value(wire)) is not None}


def read_value(wire: Wire) -> Value:
    """One value; whole numbers become int."""
    kind = wire.WhichOneof("kind")
    if kind == "string_value":
        text: str = wire.string_value
        return UNKNOWN if text == UNKNOWN_TEXT else text
    if kind == "number_value":
        number: float = wire.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return bool(wire.bool_value)
    if kind == "list_value":
        return [read_value(item) for item in wire.list_value.values]
    if kind == "struct_value":
        fields = wire.struct_value.fields
        mark = fields[SIGNATURE].string_value if SIGNATURE in fields else None
        if mark in (SECRET, OUTPUT):
            return read_value(fields["value"]) if "value" in fields else UNKNOWN
        return read_struct(wire.struct_value)
    return None


def write_struct(value: Object) -> Struct:
    """A dict as a message."""
    struct = Struct()
    for name, item in value.items():
        write_value(item, struct.fields[name])
    return struct


def write_value(value: Value, wire: Wire) -> None:
    """Put one value into a message's field."""
    if value is None:
        wire.null_value = NullValue.NULL_VALUE
    elif isinstance(value, Unknown):
        wire.string_value = UNKNOWN_TEXT
    elif isinstance(value, Secret):
        fields = wire.struct_value.fields
        fields[SIGNATURE].string_value = SECRET
        write_value(value.value, fields["value"])
    elif isinstance(value, bool):
        wire.bool_value = value
    elif isinstance(value, (int, float)):
        wire.number_value = value
    elif isinstance(value, str):
        wire.string_value = value
    elif isinstance(value, list):
        wire.list_value.CopyFrom(ListValue())
        for item in value:
            write_value(item, wire.list_value.values.add())
    else:
        wire.struct_value.CopyFrom(Struct())
        for name, item in value.items():
            write_value(item, wire.struct_value.fields[name])


def is_zero(value: Value) -> bool:
    """Whether Terraform's old SDK cannot tell this value from an absent one."""
    return value is None or value is False or value in (0, "", [], {})


def has_unknown(value: Value) -> bool:
    """Whether any part of it is unknown."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def plain_object(value: Value) -> Object:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def plain_list(value: Value) -> "list[Value]":
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def parse_path(text: str) -> Path:
    """`nodeConfig.taints[0]`, `labels["a.b"]` or `pools[*]` as steps; `*` stands for every element."""
    steps: list[str | int] = []
    rest = text
    while rest:
        if rest[0] == ".":
            rest = rest[1:]
        elif rest[0] == "[":
            if rest[1:2] == '"':
                end = rest.index('"]', 2)
                steps.append(rest[2:end])
                rest = rest[end + 2 :]
            else:
                end = rest.index("]")
                inner = rest[1:end]
                steps.append(int(inner) if inner.isdigit() else inner)
                rest = rest[end + 1 :]
        else:
            end = min((at for mark in ".[" if (at := rest.find(mark)) >= 0), default=len(rest))
            steps.append(rest[:end])
            rest = rest[end:]
    return tuple(steps)


def format_path(path: Path) -> str:
    """The engine's spelling of a path."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and all(c.isalnum() or c in "_-" for c in step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def at_path(value: Value, path: Path) -> Value:
    """What lies at a path; None where nothing does."""
    for step in path:
        if isinstance(step, int):
            items = plain_list(value)
            value = items[step] if step < len(items) else None
        else:
            value = plain_object(value).get(step)
    return value


def with_path(value: Object, path: Path, new: Value) -> Object:
    """A copy with `new` at the path (None takes it away); only the objects and lists on the way are copied."""
    result: Value = _with_step(value, path, new)
    return plain_object(result)


def _with_step(value: Value, path: Path, new: Value) -> Value:
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(plain_list(value))
        if step < len(items):
            items[step] = _with_step(items[step], rest, new)
        return items
    if not isinstance(value, dict) and new is None:
        return value
    copy = dict(plain_object(value))
    inner = _with_step(copy.get(step), rest, new)
    if inner is None:
        copy.pop(step, None)
    else:
        copy[step] = inner
    return copy


def expand_path(path: Path, *values: Value) -> Iterator[Path]:
    """The path with each `*` replaced by what the values have there."""
    if "*" not in path:
        yield path
        return
    star = path.index("*")
    head, rest = path[:star], path[star + 1 :]
    steps: dict[str | int, None] = {}
    for value in values:
        inner = at_path(value, head)
        steps.update(dict.fromkeys(range(len(inner)) if isinstance(inner, list) else plain_object(inner)))
    for step in steps:
        yield from expand_path((*head, step, *rest), *values)
