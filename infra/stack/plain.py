"""Any value of a stack file as plain JSON, and the secrets found in it."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

DEEPEST = 20
MOST_VALUES = 20_000

_SECRET = re.compile(r"secret|token$|passw|passphrase|(api|private)_?key|access_?key(?!_?id)|credential")
_OF_A_TOKENIZER = re.compile(r"(^|_)(pad|eos|bos|unk|sep|cls|mask|image|audio|video)_?token$")
"""What a tokenizer marks a text with."""
_NAMED = re.compile(r"""(?<![-\w])([-\w]++)["']?\s*[=:]\s*""", re.ASCII)
_VALUE = re.compile(r"""(?!\[secret])("[^"]*"|'[^']*'|[^\s"',;&})\]]+)""")
"""Behind `NAME=` or `name: `, in quotes or not."""
_FLAG = re.compile(rf"(?<![-\w])(--[-\w]++)(\s+){_VALUE.pattern}", re.ASCII)
_LOGIN = re.compile(
    r"//[^/\s@:]*:\S{0,1000}@|//[^/\s]*@|^[^/\s@:]*:(?!//)\S{1,1000}@(?=[-.\w]+:[0-9]+$)(?!sha256:)", re.ASCII
)
"""Who logs in at an address, in front of its host."""


class TooLargeError(ValueError):
    """The value is nested too deeply, refers to itself, or grows beyond all bounds through aliases."""


class NoNumber(str):
    """A number that JSON has no form for, as text: where text is right too, it is not meant as one."""

    __slots__ = ()


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
            return part if abs(part) < 2**63 else NoNumber("a number beyond 64 bits")
        if isinstance(part, float):
            return part if isfinite(part) else NoNumber(part)
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
    word = name.replace("-", "_").lower()
    return bool(_SECRET.search(word)) and not _OF_A_TOKENIZER.search(word)


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
        told = {name: str(value.get("name", "")) if name == "value" else name for name in value}
        return {
            name: "[secret]" if is_secret_name(told[name]) else without_secrets(inner) for name, inner in value.items()
        }
    if isinstance(value, list):
        flags = [isinstance(before, str) and before[:1] == "-" and is_secret_name(before) for before in ["", *value]]
        return ["[secret]" if flag else without_secrets(inner) for flag, inner in zip(flags, value, strict=False)]
    if not isinstance(value, str):
        return value
    # `--api-key x`, which in a sentence may be another's word.
    flagged = _FLAG.sub(lambda found: f"{found[1]}{found[2]}[secret]" if is_secret_name(found[1]) else found[0], value)
    return text_without_secrets(flagged)


def text_without_secrets(text: str) -> str:
    """`text` without the values of what is called like a secret in it, and without who logs in at an address."""
    text = _LOGIN.sub(lambda found: "//[secret]@" if found[0].startswith("//") else "[secret]@", text)
    shown, end = "", 0
    for found in _NAMED.finditer(text):
        if found.start() >= end and is_secret_name(found[1]) and (value := _VALUE.match(text, found.end())):
            shown, end = f"{shown}{text[end : found.end()]}[secret]", value.end()
    return shown + text[end:]


def _text(value: object) -> str:
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text.encode("utf-8", "replace").decode("utf-8")
