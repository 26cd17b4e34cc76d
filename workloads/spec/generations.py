"""TPU generations: machine types, topologies, memory and the names each system gives them.

GKE topologies and machine types: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
"""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class MachineType:
    """One VM type. `single_host` is the topology that one VM makes alone."""

    name: str
    chips: int
    single_host: str


@dataclass(frozen=True)
class Generation:
    """One generation's table. `small` lists topologies up to one cube; larger ones follow the rule of `topologies`."""

    name: str
    gke_accelerator: str
    ray_version: str
    ray_accelerator_type: str
    compiler_name: str
    hbm_gib_per_chip: int
    cores_in_pod_type: int
    machine_types: tuple[MachineType, ...]
    small: tuple[str, ...]
    max_chips: int

    def topologies(self) -> tuple[str, ...]:
        """Every legal topology, by number of chips."""
        return self.small

    def machine_types_for(self, topology: str) -> tuple[MachineType, ...]:
        """The machine types that make this topology, the one with most chips first."""
        chips = prod(int(side) for side in topology.split("x"))
        alone = [m for m in self.machine_types if m.single_host == topology]
        shared = [m for m in self.machine_types if m.chips == 4 and chips > 4]
        return tuple(sorted(alone + shared, key=lambda m: -m.chips))


_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
GENERATIONS: dict[str, Generation] = {
    "v5e": Generation(
        "v5e", "tpu-v5-lite-podslice", "v5litepod", "TPU-V5LITEPOD", "v5e", 16, 1,
        (MachineType("ct5lp-hightpu-1t", 1, "1x1"), MachineType("ct5lp-hightpu-4t", 4, "2x2"), MachineType("ct5lp-hightpu-8t", 8, "2x4")),
        _FLAT, 256,
    ),
    "v6e": Generation(
        "v6e", "tpu-v6e-slice", "v6e", "TPU-V6E", "v6e", 32, 1,
        (MachineType("ct6e-standard-1t", 1, "1x1"), MachineType("ct6e-standard-4t", 4, "2x2"), MachineType("ct6e-standard-8t", 8, "2x4")),
        _FLAT, 256,
    ),
}
