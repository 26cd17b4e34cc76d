"""A slice: the hosts that share one ICI mesh, and everything that follows from its generation and topology."""

from functools import cached_property
from math import prod

from pydantic import BaseModel, ConfigDict, model_validator

from workloads.spec.generations import GENERATIONS, Generation, MachineType
from workloads.spec.nearest import nearest


class SliceError(ValueError):
    """A slice that cannot exist.

    `key` is the part that is wrong (`generation`, `topology` or `machine_type`), `value` what was written, `reason` one
    sentence, `allowed` the legal values, `nearest` the closest of them (None where nothing is close).
    """

    def __init__(self, key: str, value: str, reason: str, allowed: tuple[str, ...], closest: str | None) -> None:
        super().__init__(reason)
        self.key, self.value, self.reason, self.allowed, self.nearest = key, value, reason, allowed, closest


class Slice(BaseModel):
    """One legal slice. Three words are stored; all the rest is derived from the generation's table.

    Build it with `resolve_slice`, which explains what is wrong, or from its own JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: str
    topology: str
    machine_type: str

    @model_validator(mode="after")
    def _legal(self) -> "Slice":
        resolve_parts(self.generation, self.topology, self.machine_type)
        return self

    @cached_property
    def _table(self) -> Generation:
        return GENERATIONS[self.generation]

    @cached_property
    def _machine(self) -> MachineType:
        return next(m for m in self._table.machine_types if m.name == self.machine_type)

    @property
    def dims(self) -> tuple[int, ...]:
        """The topology as numbers: `4x4` is (4, 4)."""
        return tuple(int(side) for side in self.topology.split("x"))

    @property
    def chips(self) -> int:
        return prod(self.dims)

    @property
    def chips_per_host(self) -> int:
        return self._machine.chips

    @property
    def hosts(self) -> int:
        return self.chips // self.chips_per_host

    @property
    def multi_host(self) -> bool:
        return self.hosts > 1

    @property
    def hbm_gib_per_chip(self) -> int:
        return self._table.hbm_gib_per_chip

    @property
    def gke_accelerator(self) -> str:
        """Value of the node label `cloud.google.com/gke-tpu-accelerator`."""
        return self._table.gke_accelerator

    @property
    def ray_accelerator_type(self) -> str:
        """Ray's accelerator string, e.g. `TPU-V6E`."""
        return self._table.ray_accelerator_type

    @property
    def ray_pod_type(self) -> str:
        """Ray's pod type, e.g. `v6e-16`; the number counts cores on v4, v5p and v7x, chips on v5e and v6e."""
        return f"{self._table.ray_version}-{self.chips * self._table.cores_in_pod_type}"

    @property
    def ray_head_resource(self) -> str:
        """The Ray resource that only worker 0 of such a slice has."""
        return f"TPU-{self.ray_pod_type}-head"

    @property
    def compiler_topology(self) -> str:
        """Name that the TPU compiler gives this slice."""
        return f"{self._table.compiler_name}:{self.topology}"


# resolve_parts / resolve_slice / catalogue: see below
def resolve_parts(generation: str, topology: str, machine_type: str | None) -> MachineType:
    """The machine type that a slice of these words has. Raises SliceError for what cannot exist."""
    table = GENERATIONS.get(generation)
    if table is None:
        known = tuple(GENERATIONS)
        raise SliceError("generation", generation, "there is no such TPU generation", known, nearest(generation, known))
    legal = table.topologies()
    if topology not in legal:
        raise SliceError(
            "topology", topology, f"{generation} has no slice of this topology", legal, nearest(topology, legal)
        )
    fitting = table.machine_types_for(topology)
    if machine_type is None:
        return fitting[0]
    for machine in fitting:
        if machine.name == machine_type:
            return machine
    names = tuple(m.name for m in fitting)
    raise SliceError(
        "machine_type",
        machine_type,
        f"{generation} {topology} is not made of this machine",
        names,
        nearest(machine_type, names),
    )


def resolve_slice(generation: str, topology: str, machine_type: str | None = None) -> Slice:
    """The slice of this generation and topology. Where two machine types are legal, the one with fewer hosts is meant.

    Raises:
        SliceError: the generation is unknown, it has no such topology, or the machine does not make that slice.
    """
    machine = resolve_parts(generation, topology, machine_type)
    return Slice(generation=generation, topology=topology, machine_type=machine.name)


def catalogue() -> tuple[Slice, ...]:
    """Every legal slice, by generation, then by chips; a topology that two machine types make appears twice."""
    return tuple(
        Slice(generation=generation, topology=topology, machine_type=machine.name)
        for generation, table in GENERATIONS.items()
        for topology in table.topologies()
        for machine in table.machine_types_for(topology)
    )
