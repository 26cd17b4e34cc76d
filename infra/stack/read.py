"""A stack file on disk: its `config:` mapping, or what is wrong with the file itself."""

import re
from collections.abc import Hashable
from pathlib import Path

import yaml

from infra.stack.model import StackSpec
from infra.stack.parse import SECRETS, parse_stack
from infra.stack.plain import Plain, is_secret, plain
from infra.stack.problems import Problem, StackError
from workloads.spec.nearest import nearest

FILE_KEYS = ("config", "encryptionsalt", "encryptedkey", "secretsprovider", "environment")
"""Top-level keys of a Pulumi stack file: https://www.pulumi.com/docs/iac/concepts/projects/stack-settings-file/"""


def read_stack_file(path: Path | str) -> dict[str, object]:
    """The `config:` mapping of a stack file, keys in full (`tpu-ray:pools`).

    Raises:
        StackError: the file is missing, is no YAML mapping, says a key twice, or has no `config:`.
    """
    content = _load(Path(path))
    problems = [
        Problem(
            key=str(key),
            reason="a stack file has no such key at its top",
            allowed=FILE_KEYS,
            nearest=nearest(str(key), FILE_KEYS),
        )
        for key in content
        if key not in FILE_KEYS
    ]
    config = content.get("config")
    if not isinstance(config, dict):
        given = None if config is None else str(config)
        problems.append(Problem(key="config", value=given, reason="a mapping of the stack's keys belongs here"))
    if problems or not isinstance(config, dict):
        raise StackError(problems)
    return {str(key): value for key, value in config.items()}


def load_stack(path: Path | str, project: str = "tpu-ray") -> StackSpec:
    """The stack that a file describes. Raises StackError with every mistake of it."""
    config = read_stack_file(path)
    problems = list(_bare_secrets(config, project))
    try:
        stack = parse_stack(config, project)
    except StackError as error:
        raise StackError([*error.problems, *problems]) from None
    if problems:
        raise StackError(problems)
    return stack


def _bare_secrets(config: dict[str, object], project: str) -> list[Problem]:
    """Secrets that stand in the file as readable text. Their value is not shown."""
    return [
        Problem(
            key=key,
            value="[secret]",
            reason=f"a secret stands here as readable text; store it with `pulumi config set --secret {key}`",
        )
        for key in (*(f"{project}:{name}" for name in SECRETS), "gcp:accessToken")
        if key in config and not _encrypted(plain(config[key]))
    ]


def _encrypted(value: Plain) -> bool:
    """Whether this is a secret as Pulumi writes it: `v1:<nonce>:<text>`, or base64 where Pulumi Cloud encrypts."""
    text = value.get("secure") if isinstance(value, dict) and is_secret(value) else None
    return isinstance(text, str) and bool(re.fullmatch(r"v[0-9]+:\S+|[A-Za-z0-9+/]{16,}={0,2}", text))


class Loader(yaml.SafeLoader):
    """YAML as Pulumi's own reader takes it, without keys that are said twice.

    PyYAML follows YAML 1.1, where `no` is false, `1:30` is 90 and `3e-3` is a text. A number with a base (`0x4`) or
    with zeros in front (`0123`) is a text here, so that an error shows what the user wrote.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value} stands here twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_KEPT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:(?:0|[1-9][0-9]*)?[.][0-9]+|(?:0|[1-9][0-9]*)[.]?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[.](?:inf|Inf|INF)|[.](?:nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)


def _load(path: Path) -> dict[object, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StackError([_missing(path)]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise StackError([Problem(key=str(path), reason=f"the file cannot be read: {reason}")]) from None
    try:
        content = yaml.load(text, Loader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise StackError([Problem(key=str(path), reason=f"the file is not YAML: {_where(error)}")]) from None
    if not isinstance(content, dict):
        raise StackError([Problem(key=str(path), reason="the file is not a mapping with the key config:")])
    return content


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error) or type(error).__name__
    return f"{said}, line {mark.line + 1}, column {mark.column + 1}" if mark else said


def _missing(path: Path) -> Problem:
    folder = path.parent
    beside = tuple(sorted(found.name for found in folder.glob("Pulumi.*.yaml"))) if folder.is_dir() else ()
    close = nearest(path.name, beside)
    return Problem(
        key=str(path),
        reason="there is no such file",
        allowed=tuple(str(folder / name) for name in beside),
        nearest=str(folder / close) if close else None,
    )
