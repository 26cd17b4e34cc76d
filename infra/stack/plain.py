"""Any value of a stack file as plain JSON, and the secrets found in it."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

DEEPEST = 20
MOST_VALUES = 20_000


class TooLargeError(ValueError):
    """The value is nested too deeply, refers to itself, or grows beyond all bounds through aliases."""


def plain(value: object) -> Plain:
    """`value` with only JSON's types in it; what JSON lacks (dates, infinities) becomes text.

    Raises:
        TooLargeError: more than 20 levels or 20 000 values.
    """
    left = [MOST_VALUES]

    def walk(part: object, depth: int) -> Plain:
        left[0] -= 1
        if depth > DEEPEST or left[0] < 0:
            raise TooLargeError
        if part is None or isinstance(part, bool):
            return part
        if isinstance(part, int):
            return part if abs(part) < 2**63 else "a number beyond 64 bits"
        if isinstance(part, float):
            return part if isfinite(part) else str(part)
        if isinstance(part, Mapping):
            return {_text(key): walk(inner, depth + 1) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [walk(inner, depth + 1) for inner in part]
        return _text(part)

    return walk(value, 0)


def is_secret(value: Plain) -> bool:
    """Whether Pulumi reads this value as a secret: a mapping of the one key `secure`."""
    return isinstance(value, dict) and list(value) == ["secure"]


def is_secret_name(name: str) -> bool:
    """Whether a key is called as keys of secrets are: what stands there is not shown, also where it has no place."""
    return bool(re.search(r"secret|token$|passw|api_?key|private_?key|credential", name.replace("-", "_").lower()))


def secrets_in(value: Plain, key: str) -> Iterator[str]:
    """The keys of all secrets in `value`, which itself stands at `key`."""
    if is_secret(value):
        yield key
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from secrets_in(inner, f"{key}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from secrets_in(inner, f"{key}[{index}]")


def without_secrets(value: Plain) -> Plain:
    """`value` with every secret's text taken out, also of what is only called like one, to be shown in an error."""
    if is_secret(value):
        return "[secret]"
    if isinstance(value, dict):
        named = value.get("name")
        if "value" in value and isinstance(named, str) and is_secret_name(named):
            return {**value, "value": "[secret]"}
        return {name: "[secret]" if is_secret_name(name) else without_secrets(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value


def _text(value: object) -> str:
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text.encode("utf-8", "replace").decode("utf-8")
