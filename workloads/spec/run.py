"""What a run of the user's own command is told: which run it is, on which slice, and where it may write."""

import os

from pydantic import BaseModel, ConfigDict

from workloads.spec.slices import Slice

LAUNCH_VARIABLE = "TPU_RAY_LAUNCH"
"""Environment variable of the run, on all its hosts: a DeclaredRun as JSON."""


class DeclaredRun(BaseModel):
    """The run and its slice, as the stack file has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    """`<job>-<run>`, the same in every try; of a scheduled run with its time."""
    pool: str
    """Every host of the slice carries the Ray resource `pool:<name>`."""
    slice: Slice
    folder: str
    """The run's own, shared by all hosts: `<storage>/<run>`. A try finds here what the try before it left."""
    export: str
    """Where a service with `model: job:<name>` looks: HF layout and `export.json` with `step`, written last."""

    @classmethod
    def here(cls) -> "DeclaredRun":
        """The run that this process belongs to.

        Raises:
            KeyError: it belongs to none.
        """
        return cls.model_validate_json(os.environ[LAUNCH_VARIABLE])
