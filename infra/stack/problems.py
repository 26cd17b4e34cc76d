"""What is wrong with a stack file, as data: the same list is shown to a person and printed as JSON."""

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from infra.stack.plain import is_secret_name, text_without_secrets, without_secrets


class Problem(BaseModel):
    """One mistake of the stack file.

    `key` is the place as the user wrote it (`tpu-ray:pools[0].topology`), `value` what stands there (None where it is
    missing), `reason` why that cannot be, `allowed` what may stand there, `nearest` the right value closest to the
    wrong one (None where nothing is close). All of it is JSON.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    value: Any = None
    reason: str
    allowed: tuple[str, ...] = ()
    nearest: Any = None

    def __str__(self) -> str:
        lines = [self.key if self.value is None else f"{self.key}: {_shown(self.value)}", f"    {self.reason}"]
        if self.allowed:
            lines.append("    allowed: " + ", ".join(self.allowed))
        if self.nearest is not None:
            lines.append(f"    nearest: {_shown(self.nearest)}")
        return "\n".join(lines)

    def without_secrets(self) -> "Problem":
        """The same mistake; of what stands below a key that is called like a secret, and of what looks like one
        elsewhere, nothing is shown."""
        secret = self.value is not None and any(map(is_secret_name, re.split(r"[.\[\]]", self.key)))
        value = "[secret]" if secret else without_secrets(self.value)
        near = without_secrets(self.nearest)
        return self.model_copy(
            update={
                "key": text_without_secrets(self.key),
                "value": value,
                "reason": text_without_secrets(self.reason),
                "nearest": None if near != self.nearest else near,
            }
        )


class StackError(ValueError):
    """Everything that is wrong with a stack file, at once. `str()` of it is the text that a user sees."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problem.without_secrets() for problem in problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        head = "1 mistake in the stack file" if count == 1 else f"{count} mistakes in the stack file"
        return "\n".join([f"{head}:", *map(str, self.problems)])


def _shown(value: object) -> str:
    """As YAML has it. Texts that read like a number or a word of YAML in quotes, so that `"4"` and 4 differ."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str) and re.fullmatch(r"\s*|[-+.\d][-+.\deE]*|true|false|null|~", value):
        text = f'"{value}"'
    return text if len(text) <= 200 else text[:200] + " ..."
