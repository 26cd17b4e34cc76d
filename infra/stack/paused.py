"""Writing `paused: true` into a stack file, or taking it out again, and nothing else: comments and order stay."""

import os
import re
from pathlib import Path
from typing import Any

import yaml

from infra.stack.plain import plain
from infra.stack.problems import Problem, StackError
from infra.stack.read import Loader

KEY = "paused"


def write_paused(path: Path, service: str, paused: bool, project: str = "tpu-ray") -> bool:
    """Let a stack file say of a service whether it is paused; whether that is a change.

    Raises:
        StackError: the file cannot be written, or is written so that a person has to do it.
        KeyError: there is no such service.
    """
    path = path.resolve()
    try:
        before = path.read_text(encoding="utf-8")
        after = with_paused(before, service, paused, project)
        if after == before:
            return False
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(after, encoding="utf-8")
        part.chmod(path.stat().st_mode & 0o7777)
        part.replace(path)
    except OSError as error:
        raise StackError([Problem(key=str(path), reason=f"the file cannot be written: {error.strerror}")]) from None
    return True


def with_paused(text: str, service: str, paused: bool, project: str = "tpu-ray") -> str:
    """A stack file's text that says of the service whether it is paused.

    Raises:
        StackError: it is written so that a person has to do it.
        KeyError: there is no such service.
    """
    number, entry = _entry(text, service, project)
    found = next((pair for pair in entry.value if pair[0].value == KEY), None)
    if found is None and not paused:
        return text
    edited = _added(text, entry) if found is None else _said(text, found, paused)
    expected: Any = plain(yaml.load(text, Loader))
    wanted = expected["config"][f"{project}:services"][number]
    wanted.pop(KEY, None)
    if paused:
        wanted[KEY] = True
    if _content(edited) != expected:
        key = f"{project}:services[{number}].{KEY}"
        reason = "the service is written in a way that only a person can change; write it by hand, then `up`"
        raise StackError([Problem(key=key, value=paused, reason=reason)])
    return edited


def _entry(text: str, service: str, project: str) -> tuple[int, yaml.MappingNode]:
    root = yaml.compose(text, Loader)
    services = _value(_value(root, "config"), f"{project}:services")
    for number, entry in enumerate(services.value if isinstance(services, yaml.SequenceNode) else ()):
        name = _value(entry, "name")
        if isinstance(entry, yaml.MappingNode) and isinstance(name, yaml.ScalarNode) and name.value == service:
            return number, entry
    raise KeyError(service)


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _added(text: str, entry: yaml.MappingNode) -> str:
    """Behind the name: on a line of its own, where the entry has such lines."""
    key, name = next(pair for pair in entry.value if pair[0].value == "name")
    end = name.end_mark.index
    if entry.flow_style:
        return f"{text[:end]}, {KEY}: true{text[end:]}"
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    return f"{text[:line_end]}\n{' ' * key.start_mark.column}{KEY}: true{text[line_end:]}"


def _said(text: str, pair: tuple[yaml.Node, yaml.Node], paused: bool) -> str:
    """Another value for the key that is there; for false the key goes, where it stands alone on its line or behind a
    comma."""
    key, value = pair
    start, end = key.start_mark.index, value.end_mark.index
    if paused:
        return f"{text[: value.start_mark.index]}true{text[end:]}"
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
    if not text[line_start:start].strip() and not text[end:line_end].partition("#")[0].strip():
        return text[:line_start] + text[line_end:]
    if comma := re.search(r",\s*$", text[:start]):
        return text[: comma.start()] + text[end:]
    return f"{text[: value.start_mark.index]}false{text[end:]}"


def _content(text: str) -> object:
    """What a text says, with a `paused: false` as if it were not there."""
    try:
        content: Any = plain(yaml.load(text, Loader))
    except yaml.YAMLError:
        return None
    for services in (value for key, value in content.get("config", {}).items() if key.endswith(":services")):
        for entry in services:
            if entry.get(KEY) is False:
                del entry[KEY]
    return content
