"""The whole stack file as one frozen value: platform, pools, services, jobs."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from infra.stack import forms
from infra.stack.gke import GkePlatform
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


Capacity = Literal["on-demand", "spot", "reservation", "flex-start", "queued"]
"""How Google sells the machines of a pool."""

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
    capacity: Capacity = Field(
        default="on-demand",
        description="How the machines are got: `on-demand`; `spot`, cheaper, taken back at any time; `reservation`; "
        "`flex-start`, when some are free, for a week at most; `queued`, the same for all hosts at once through Kueue.",
    )
    reservation: str | None = Field(
        default=None,
        pattern=forms.RESERVATION,
        description="With capacity `reservation`: its name, `projects/<project>/reservations/<name>` where another "
        "project shares it, with `/reservationBlocks/<block>` behind it or none.",
    )
    max_run_s: int | None = Field(
        default=None,
        ge=600,
        le=604800,
        description="With capacity `flex-start` or `queued`: how long a machine is kept, in seconds. Absent: a week.",
    )
    zone: str | None = Field(
        default=None,
        pattern=forms.ZONE,
        description="Zone of this pool, in the platform's region; absent: the platform's.",
    )
    second_nic: bool = Field(
        default=False,
        description="Whether each host has a second network interface, which jobs over several slices need (v6e, v7x).",
    )
    node_image: Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"] = Field(
        default="COS_CONTAINERD", description="The nodes' operating system."
    )
    boot_disk_gib: int = Field(default=100, ge=50, le=65536, description="Size of each host's boot disk, in GiB.")
    usd_per_chip_hour: float | None = Field(
        default=None,
        gt=0,
        le=1000,
        description="What a chip costs you, in dollars per hour; absent: the list price, where one is published.",
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

    @property
    def running_services(self) -> tuple[ServiceSpec, ...]:
        """The services that are not paused."""
        return tuple(service for service in self.services if not service.paused)

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
