"""A slice: the hosts that share one ICI mesh, and everything that follows from its generation and topology."""

from functools import cached_property
from math import prod

from pydantic import BaseModel, ConfigDict, model_validator

from workloads.spec.generations import GENERATIONS, Generation, MachineType, dims_of
from workloads.spec.nearest import (
    is_alias,
    nearest,
    nearest_generation,
    nearest_topology,
    suffix_of,
    topology_of_suffix,
)


class SliceError(ValueError):
    """A slice that cannot exist.

    `key` is the part that is wrong (`generation`, `topology` or `machine_type`), `value` what was written, `reason` one
    sentence, `allowed` the legal values (of the large topologies only the documented ones), `nearest` the closest legal
    value (None where nothing is close).
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
        mistakes = slice_mistakes(self.generation, self.topology, self.machine_type)
        if mistakes:
            raise mistakes[0]
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
        return dims_of(self.topology)

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
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
    def devices_per_host(self) -> int:
        """JAX devices of one host: one per chip, but two per chip on v7x."""
        return self.chips_per_host * self._table.devices_per_chip

    @property
    def devices(self) -> int:
        """JAX devices of the whole slice."""
        return self.hosts * self.devices_per_host

    @property
    def ray_accepts(self) -> bool:
        """Whether Ray reserves slices of this topology; its table is narrower than GKE's for some large ones."""
        return self._table.ray_accepts(self.topology)

    @property
    def fewest_hosts(self) -> bool:
        """Whether it is made of the machine that is meant where none is named, which is also the one Ray takes."""
        return self.machine_type == self._table.machine_types_for(self.topology)[0].name

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
        return f"{self._table.ray_version}-{self.chips * self._table.suffix_per_chip}"

    @property
    def ray_head_resource(self) -> str:
        """The Ray resource that only worker 0 of such a slice has."""
        return f"TPU-{self.ray_pod_type}-head"

    @property
    def compiler_topology(self) -> str:
        """Name that the TPU compiler gives this slice, e.g. `v6e:4x4`, `tpu7x:2x2x2`.

        The compiler takes hosts of at most 2x2x1 chips for granted; pass it `compiler_host_bounds` too where the host
        is larger (a `2x4` on one 8-chip machine).
        """
        return f"{self._table.compiler_name}:{self.topology}"

    @property
    def compiler_host_bounds(self) -> tuple[int, int, int]:
        """Chips of one host along each side: the compiler's `chips_per_host_bounds`."""
        x, y, *z = dims_of(self._machine.single_host)
        return (x, y, z[0] if z else 1)


def slice_mistakes(generation: str, topology: str, machine_type: str | None = None) -> tuple[SliceError, ...]:
    """Everything that is wrong with these words; empty where they name a slice."""
    table = GENERATIONS.get(generation)
    if table is None:
        return _unknown_generation(generation, topology)
    if topology not in table.topologies():
        return (_illegal_topology(table, topology),)
    names = tuple(machine.name for machine in table.machine_types_for(topology))
    if machine_type is None or machine_type in names:
        return ()
    reason = f"a {generation} slice {topology} is not made of this machine; leave the key out to get {names[0]}"
    return (SliceError("machine_type", machine_type, reason, names, nearest(machine_type, names) or names[0]),)


def resolve_slice(generation: str, topology: str, machine_type: str | None = None) -> Slice:
    """The slice of this generation and topology. Where two machine types are legal, the one with fewer hosts is meant.

    Raises:
        SliceError: the generation is unknown, it has no such topology, or the machine does not make that slice.
    """
    mistakes = slice_mistakes(generation, topology, machine_type)
    if mistakes:
        raise mistakes[0]
    machine = machine_type or GENERATIONS[generation].machine_types_for(topology)[0].name
    return Slice(generation=generation, topology=topology, machine_type=machine)


def catalogue() -> tuple[Slice, ...]:
    """Every legal slice, by generation, then by chips; a topology that two machine types make appears twice."""
    return tuple(
        Slice(generation=generation, topology=topology, machine_type=machine.name)
        for generation, table in GENERATIONS.items()
        for topology in table.topologies()
        for machine in table.machine_types_for(topology)
    )


def _unknown_generation(generation: str, topology: str) -> tuple[SliceError, ...]:
    known = tuple(GENERATIONS)
    close = nearest_generation(generation)
    number = suffix_of(generation)
    if number is not None:
        reason = (
            "a generation has no size: the number after the dash counts cores on v4, v5p and v7x and chips on v5e and "
            "v6e, so the size is written as a topology"
        )
        meant = topology_of_suffix(GENERATIONS[close], number) if close else None
        if close and meant:
            reason += f"; {generation} is generation {close} with topology {meant}"
    else:
        reason = f"{generation} is called {close} here" if is_alias(generation) else "there is no such TPU generation"
    mistakes = [SliceError("generation", generation, reason, known, close)]
    if close and not any(topology in table.topologies() for table in GENERATIONS.values()):
        mistakes.append(_illegal_topology(GENERATIONS[close], topology))
    return tuple(mistakes)


def _illegal_topology(table: Generation, topology: str) -> SliceError:
    if suffix_of(topology) is not None:
        reason = (
            "a topology is the sides of the slice, such as " + table.small[-1] + "; the number of a name such as v5p-8 "
            "counts cores on some generations and chips on others"
        )
    elif table.flat:
        reason = f"a {table.name} slice has one of these topologies, the shorter side first"
    else:
        reason = (
            f"a {table.name} slice has one of these topologies, or above 64 chips AxBxC with A <= B <= C, "
            f"all multiples of 4 and at most 256, and at most {table.max_chips} chips"
        )
    return SliceError("topology", topology, reason, table.shown(), nearest_topology(topology, table))
