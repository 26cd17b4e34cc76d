"""The whole stack file as one frozen value: platform, pools, services, jobs."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from infra.stack import forms
from workloads.spec import JobSpec, ServiceSpec, Slice, resolve_slice
from workloads.spec.service import NAME_PATTERN


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Port = Annotated[int, Field(ge=1024, le=65535)]


class LocalPlatform(_Frozen):
    """This machine: every host of every slice is a process that looks to Ray like a TPU host."""

    kind: Literal["local"] = Field(default="local", description="`local`: emulated slices on this machine.")
    http_port: Port = Field(default=8000, description="Where the services answer.")
    dashboard_port: Port = Field(default=8265, description="Where Ray's dashboard answers.")
    memory_gib: float = Field(default=16, ge=1, le=4096, description="Memory that the stack may take, in GiB.")


class GkePlatform(_Frozen):
    """A GKE cluster with the Ray operator add-on, and one TPU node pool per slice."""

    kind: Literal["gke"] = Field(default="gke", description="`gke`: a cluster on Google Kubernetes Engine.")
    project: str = Field(pattern=forms.PROJECT, description="Google Cloud project id.")
    region: str = Field(pattern=forms.REGION, description="Region of the cluster, e.g. `us-east5`.")
    zone: str = Field(
        pattern=forms.ZONE,
        description="Zone of the TPU node pools: a slice lies in one zone.",
    )
    image: str = Field(
        pattern=forms.IMAGE,
        description="Container image with Ray and this project's `workloads` in it.",
    )
    storage: str = Field(
        pattern=forms.BUCKET,
        description="Bucket for checkpoints and exported models, `gs://...`.",
    )
    namespace: str = Field(
        default="default", pattern=NAME_PATTERN, max_length=63, description="Kubernetes namespace of the workloads."
    )
    ray_version: str = Field(
        default="2.60.0", pattern=forms.VERSION, description="Ray's version; must be the one in the image."
    )


Platform = Annotated[LocalPlatform | GkePlatform, Field(discriminator="kind")]


class SliceCount(_Frozen):
    """How many slices a pool has: `min` are kept, up to `max` are made on demand."""

    min: int = Field(ge=0, le=1024, description="Slices that are kept even when nothing runs.")
    max: int = Field(ge=1, le=1024, description="Slices at most.")


class PoolSpec(_Frozen):
    """One entry of `tpu-ray:pools`: slices of one shape. Everything else about them is derived from these words."""

    name: str = Field(pattern=NAME_PATTERN, max_length=36, description="Services and jobs name their pool by it.")
    generation: str = Field(description="`v4`, `v5e`, `v5p`, `v6e` or `v7x`.")
    topology: str = Field(description="Sides of the slice, e.g. `4x4` or `2x2x2`; see the table of slices.")
    machine_type: str | None = Field(
        default=None, description="Only where two machine types make the topology (`2x4`); absent: fewest hosts."
    )
    slices: SliceCount = Field(
        default=SliceCount(min=1, max=1), description="Number of slices, or `{min: ..., max: ...}`."
    )

    @field_validator("slices", mode="before")
    @classmethod
    def _number_of_slices(cls, value: object) -> object:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return {"min": value, "max": value} if whole else value

    @model_validator(mode="after")
    def _legal(self) -> "PoolSpec":
        resolve_slice(self.generation, self.topology, self.machine_type)
        return self

    @property
    def slice(self) -> Slice:
        """The shape of each of the pool's slices."""
        return resolve_slice(self.generation, self.topology, self.machine_type)


class StackSpec(_Frozen):
    """A stack file that was found right. Make it with `parse_stack`, which explains everything that is wrong."""

    platform: Platform
    pools: tuple[PoolSpec, ...]
    services: tuple[ServiceSpec, ...] = ()
    jobs: tuple[JobSpec, ...] = ()

    def pool(self, name: str) -> PoolSpec:
        """The pool of that name. Raises KeyError where there is none."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)

    def job(self, name: str) -> JobSpec:
        """The job of that name. Raises KeyError where there is none."""
        for job in self.jobs:
            if job.name == name:
                return job
        raise KeyError(name)

    @property
    def chips(self) -> int:
        """Chips of all pools together, every pool at its largest."""
        return sum(pool.slice.chips * pool.slices.max for pool in self.pools)
