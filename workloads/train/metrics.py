"""metrics.jsonl: one line for each step of a run, each exactly once, whatever was restarted in between."""

import json
from collections.abc import Mapping
from typing import Any

from etils import epath  # type: ignore[import-untyped]

from workloads.whole_file import write_whole


class MetricsLog:
    """Appends lines; on a bucket, where nothing can be appended, the file is written anew at every flush."""

    def __init__(self, path: epath.Path, first_step: int) -> None:
        """Keep the lines of steps before `first_step` and drop the rest: those steps are about to be taken again."""
        self._path = path
        self._appends = "://" not in str(path)
        self._lines = [line for line in _complete_lines(path) if json.loads(line)["step"] < first_step]
        self._write_all()

    def add(self, values: Mapping[str, Any]) -> None:
        """Add the line of one step."""
        line = json.dumps(dict(values))
        if self._appends:
            with self._path.open("a") as file:
                file.write(line + "\n")
        else:
            self._lines.append(line)

    def flush(self) -> None:
        """Make the lines so far readable. Called with every checkpoint."""
        if not self._appends:
            self._write_all()

    def _write_all(self) -> None:
        write_whole(self._path, "".join(line + "\n" for line in self._lines))


def _complete_lines(path: epath.Path) -> list[str]:
    """The file's lines that are whole; a killed process may have left half of one at the end."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines():
        try:
            json.loads(line)
        except json.JSONDecodeError:
            continue
        lines.append(line)
    return lines
