"""What a run of the user's own command is told: which run it is, on which slice, and where it may write."""

import os

from pydantic import BaseModel, ConfigDict

from workloads.spec.slices import Slice

LAUNCH_VARIABLE = "TPU_RAY_LAUNCH"
"""Environment variable of the run, on all its hosts: a DeclaredRun as JSON."""

STOPPED_ANNOTATION = "tpu-ray/stopped"
"""On a RayJob: when somebody stopped the run. To KubeRay it is suspended, which also a queue does."""
TIME_OF_RUN = "{run-time}"
"""Stands for a scheduled run's time wherever its pattern has its name; in no name of a user's own."""


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


SUBMISSION_VARIABLE, JOB_VARIABLE = "TPU_RAY_SUBMISSION", "TPU_RAY_JOB"
"""Environment variables of `python -m workloads.submit_run`: a Submission as JSON, and the name of the pod's Job."""


class Submission(BaseModel):
    """What a schedule begins at its times."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schedule: str
    """Name of the CronJob; its runs carry it as the value of `label`."""
    label: str
    manifest: str
    """The RayJob as JSON, with TIME_OF_RUN for each run's time."""
    keep: int
    """How many runs are still listed, the one that begins included."""
