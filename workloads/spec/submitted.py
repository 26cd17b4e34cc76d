"""What somebody runs from a working directory on a slice of a pool."""

from pydantic import BaseModel, ConfigDict, Field

from workloads.spec.slices import Slice


class SubmittedLaunch(BaseModel):
    """Argument of `python -m workloads.submitted`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Its submission id."""
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, started in the working directory on every host of the slice."""
    slice: Slice
    pool: str
    reserve_timeout_s: int
    """How long it waits for a free slice of its pool."""
    timeout_s: int
    """How long it may take, waiting included."""
