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
from workloads.whole_file import write_whole

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

    @property
    def _claim(self) -> epath.Path:
        return self.root / "run.json"

    @property
    def _fixed(self) -> dict[str, Any]:
        return {key: value for key, value in self.launch.job.model_dump(mode="json").items() if key in FIXED_KEYS}

    def check_claim(self) -> None:
        """Check that the run, where it has begun, was started with what this launch says.

        What a try left that was refused before it began is removed: its rows may be of another text.

        Raises:
            JobProblem: this run was started with another value of a key in FIXED_KEYS.
        """
        if not self._claim.exists():
            if self.data.exists():
                self.data.rmtree()
            return
        ours, theirs = self._fixed, json.loads(self._claim.read_text())
        for key in FIXED_KEYS:
            if ours[key] != theirs.get(key):
                raise JobProblem(
                    key,
                    ours[key],
                    f"run {self.launch.job.run!r} of this job was started with {theirs.get(key)!r}"
                    "; change `run` to start a new run",
                    theirs.get(key),
                )

    def claim(self) -> None:
        """Write down what the run, which begins now, was started with."""
        if not self._claim.exists():
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self._claim, json.dumps(self._fixed, indent=2))

    def trace(self) -> str:
        """A text that changes with every step of the run; on a bucket with every checkpoint."""
        return str(self.metrics.read_text()) if self.metrics.exists() else ""

    def forget_reports(self) -> None:
        """Drop Ray's list of earlier tries: it would insist on checkpoints that were since pruned.

        The checkpoints are found by looking at them (`checkpoint.newest_complete`).
        """
        (self.root / RAY_SNAPSHOT).unlink(missing_ok=True)
