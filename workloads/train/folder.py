"""Where a run's files lie, below `<storage>/<job>-<run>/`. Ray Train keeps its own files in the same folder.

run.json           the keys that a run may not change
data/              rows and tokenizer's text, made once by the driver
checkpoints/<n>/   the state after n steps
metrics.jsonl      one line for each step
export/            the model as a service reads it; export.json is written last
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from etils import epath  # type: ignore[import-untyped]

from workloads.data.problem import JobProblem
from workloads.spec.launch import JobLaunch

FIXED_KEYS = ("steps", "learning_rate", "seed", "model", "data")
"""What the result depends on. The slice, the mesh and the limits may change between two tries of one run."""

RAY_SNAPSHOT = "checkpoint_manager_snapshot.json"
"""Ray's list of the checkpoints that were reported to it (ray/train/v2/_internal/constants.py)."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    launch: JobLaunch

    @cached_property
    def root(self) -> epath.Path:
        return epath.Path(self.launch.storage) / self.launch.run_name

    @property
    def data(self) -> epath.Path:
        return self.root / "data"

    @property
    def checkpoints(self) -> epath.Path:
        return self.root / "checkpoints"

    @property
    def metrics(self) -> epath.Path:
        return self.root / "metrics.jsonl"

    @property
    def export(self) -> epath.Path:
        return epath.Path(self.launch.export_dir)

    def exported(self) -> dict[str, Any] | None:
        """What export.json says, or None while the run has not finished."""
        marker = self.export / "export.json"
        return dict(json.loads(marker.read_text())) if marker.exists() else None

    def claim(self) -> None:
        """Write run.json, or check that it says what this launch says.

        Raises:
            JobProblem: this run was started with another value of a key in FIXED_KEYS.
        """
        ours = {key: value for key, value in self.launch.job.model_dump(mode="json").items() if key in FIXED_KEYS}
        marker = self.root / "run.json"
        if marker.exists():
            theirs = json.loads(marker.read_text())
            for key in FIXED_KEYS:
                if ours[key] != theirs.get(key):
                    raise JobProblem(
                        key,
                        ours[key],
                        f"run {self.launch.job.run!r} of this job was started with {theirs.get(key)!r}"
                        "; change `run` to start a new run",
                        theirs.get(key),
                    )
            return
        self.root.mkdir(parents=True, exist_ok=True)
        marker.write_text(json.dumps(ours, indent=2))

    def forget_reports(self) -> None:
        """Drop Ray's list of earlier tries: it would insist on checkpoints that were since pruned.

        The checkpoints are found by looking at them (`checkpoint.newest_complete`).
        """
        (self.root / RAY_SNAPSHOT).unlink(missing_ok=True)
