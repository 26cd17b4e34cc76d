"""The checkout's Pulumi project: where it is and which stack files it has."""

from dataclasses import dataclass
from pathlib import Path

import yaml


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
        return tuple(sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in files))


class ProjectNotFound(Exception):
    """There is no Pulumi.yaml at or above the working directory, nor in the checkout this package comes from."""


def find_project(start: Path | None = None) -> Project:
    """The project at or above `start` (the working directory), else the checkout that this package is installed from.

    Raises:
        ProjectNotFound: neither has a Pulumi.yaml.
    """
    begin = (start or Path.cwd()).absolute()
    checkout = Path(__file__).absolute().parents[2]
    for folder in (begin, *begin.parents, checkout):
        file = folder / "Pulumi.yaml"
        if file.is_file():
            settings = yaml.safe_load(file.read_text()) or {}
            return Project(folder, str(settings.get("name", "")), folder / str(settings.get("stackConfigDir", "")))
    raise ProjectNotFound(f"there is no Pulumi.yaml in {begin} or above it; run this in a checkout of tpu-ray")
