"""The checkout's Pulumi project: where it is and which stack files it has."""

from dataclasses import dataclass
from pathlib import Path

import yaml

NAME = "tpu-ray"
"""The project's name in Pulumi.yaml, and the prefix of its keys in stack files."""


@dataclass(frozen=True)
class Project:
    """`root` holds Pulumi.yaml; `stack_dir` the stack files."""

    root: Path
    name: str
    stack_dir: Path

    def stack_file(self, stack: str) -> Path:
        """Path of a stack's file, whether it exists or not."""
        return self.stack_dir / f"Pulumi.{stack}.yaml"

    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks that have a file."""
        files = self.stack_dir.glob("Pulumi.*.yaml")
        return tuple(sorted(f.name.removeprefix("Pulumi.").removesuffix(".yaml") for f in files if f.is_file()))


class ProjectNotFound(Exception):
    """No Pulumi.yaml of tpu-ray at or above the working directory, nor in the checkout this package comes from."""


def find_project(start: Path | None = None) -> Project:
    """The project at or above `start` (the working directory), else the checkout that this package is installed from.

    Another program's Pulumi.yaml is passed over: its stacks are not ours to run.

    Raises:
        ProjectNotFound: neither has a Pulumi.yaml of this project, or one cannot be read.
    """
    begin = (start or Path.cwd()).absolute()
    checkout = Path(__file__).absolute().parents[2]
    for folder in (begin, *begin.parents, checkout):
        file = folder / "Pulumi.yaml"
        if file.is_file() and (settings := _settings(file)).get("name") == NAME:
            return Project(folder, NAME, folder / str(settings.get("stackConfigDir") or ""))
    raise ProjectNotFound(f"there is no Pulumi.yaml of {NAME} in {begin} or above it; run this in a checkout of {NAME}")


def _settings(file: Path) -> dict[str, object]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise ProjectNotFound(f"{file} cannot be read: {said}") from None
    return content if isinstance(content, dict) else {}
