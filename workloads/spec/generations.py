"""TPU generations: machine types, topologies, memory, and the name that each system gives them.

Where the numbers come from:
    GKE machine types, topologies and labels: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
    chips, cores and memory per generation: the page of each generation, named at its block
    Ray's names and the topologies it accepts: https://github.com/ray-project/ray/blob/ray-2.60.0/python/ray/_private/accelerators/tpu.py
    the compiler's names: libtpu 0.0.52 through `jax.experimental.topologies.get_topology_desc`

Left out on purpose: `tpu-v5-lite-device` (Ray's autoscaler and its nodes disagree about that name), ct5p-hightpu-1t,
ct5p-hightpu-2t and tpu7x-ultranet-4t (GKE documents no topology for them), `2x8` (Ray lists it, GKE does not make it).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod

CUBE = 64
"""Chips of a 4x4x4 cube, the block that larger 3D slices are made of."""


def dims_of(topology: str) -> tuple[int, ...]:
    """`2x4` as (2, 4). Raises ValueError for text that is not numbers joined by x."""
    return tuple(int(side) for side in topology.split("x"))


def chips_of(topology: str) -> int:
    """Number of chips of a topology: the product of its sides."""
    return prod(dims_of(topology))


@dataclass(frozen=True)
class MachineType:
    """One VM type. `single_host` is the topology that one VM makes alone; `joins` says whether several make a slice."""

    name: str
    chips: int
    single_host: str
    joins: bool = False


@dataclass(frozen=True)
class Generation:
    """One generation's table.

    `small` lists every topology up to one cube (3D) or up to the whole pod (2D). Above one cube a 3D topology AxBxC is
    legal when its sides are multiples of 4, A <= B <= C, none above 256, and it has at most `max_chips` chips.
    """

    name: str
    gke_accelerator: str
    """Value of the node label `cloud.google.com/gke-tpu-accelerator`."""
    ray_version: str
    ray_accelerator_type: str
    compiler_name: str
    hbm_gib_per_chip: int
    suffix_per_chip: int
    """What the number of a name such as `v5p-8` counts: 2 where it counts cores, 1 where it counts chips."""
    devices_per_chip: int
    """JAX devices of one chip. The two cores of a v4 or v5p chip are one device, those of a v7x chip are two."""
    machine_types: tuple[MachineType, ...]
    small: tuple[str, ...]
    max_chips: int
    named: tuple[str, ...]
    """Larger topologies, shown where the whole list would be too long."""
    aliases: tuple[str, ...]
    """Other systems' names for it. They are no input: an error for one of them points here."""
    ray_box: tuple[int, int, int] | None = None
    """The sides of the largest box in which Ray accepts every multiple of 4, where its table is made by that rule."""
    ray_named: frozenset[str] = frozenset()
    """The topologies that Ray accepts by name."""

    @property
    def flat(self) -> bool:
        """Whether its topologies have two sides."""
        return len(dims_of(self.small[0])) == 2

    def topologies(self) -> tuple[str, ...]:
        """Every legal topology, by number of chips, then by sides."""
        return _topologies(self.small, self.max_chips)

    def shown(self) -> tuple[str, ...]:
        """The topologies worth listing to a person: all small ones and the documented large ones."""
        return self.small + self.named

    def machine_types_for(self, topology: str) -> tuple[MachineType, ...]:
        """The machine types that make this topology, the one with most chips first."""
        alone = [m for m in self.machine_types if m.single_host == topology]
        joined = [m for m in self.machine_types if m.joins and chips_of(topology) > m.chips]
        return tuple(sorted(alone + joined, key=lambda m: -m.chips))

    def ray_accepts(self, topology: str) -> bool:
        """Whether Ray reserves slices of this topology; it refuses some that GKE makes."""
        if topology in self.ray_named:
            return True
        sides = dims_of(topology)
        if self.ray_box is None or any(side % 4 for side in sides):
            return False
        return all(side <= most for side, most in zip(sides, self.ray_box, strict=True))


def _large(max_chips: int) -> Iterator[str]:
    """3D topologies above one cube; the rule is the one of GKE's page and of xpk's `generate_tpu_topologies`."""
    for a in range(4, 257, 4):
        for b in range(a, min(256, max_chips // (a * a)) + 1, 4):
            for c in range(b, min(256, max_chips // (a * b)) + 1, 4):
                if a * b * c > CUBE:
                    yield f"{a}x{b}x{c}"


@cache
def _topologies(small: tuple[str, ...], max_chips: int) -> tuple[str, ...]:
    large = _large(max_chips) if len(dims_of(small[0])) == 3 else iter(())
    return small + tuple(sorted(large, key=lambda topology: (chips_of(topology), dims_of(topology))))


# 2D: https://docs.cloud.google.com/tpu/docs/v5e and https://docs.cloud.google.com/tpu/docs/v6e
_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_FLAT_RAY = frozenset(_FLAT)
# 3D: https://docs.cloud.google.com/tpu/docs/v4, https://docs.cloud.google.com/tpu/docs/v5p
_SOLID = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4")
_SOLID_NAMED = ("4x4x8", "4x4x12", "4x8x8", "4x8x12", "8x8x8", "8x8x12", "8x8x16", "8x16x16")

# https://docs.cloud.google.com/tpu/docs/v4 (32 GiB a chip, 2 cores); GKE's page names 12x16x16 as the largest topology.
V4 = Generation(
    name="v4",
    gke_accelerator="tpu-v4-podslice",
    ray_version="v4",
    ray_accelerator_type="TPU-V4",
    compiler_name="v4",
    hbm_gib_per_chip=32,
    suffix_per_chip=2,
    devices_per_chip=1,
    machine_types=(MachineType("ct4p-hightpu-4t", 4, "2x2x1", joins=True),),
    small=_SOLID,
    max_chips=3072,
    named=(*_SOLID_NAMED, "12x16x16"),
    aliases=("tpu-v4", "tpu-v4-podslice", "ct4p"),
    ray_box=(12, 12, 16),
    ray_named=frozenset({"2x2x1", "2x2x2", "2x2x4", "2x4x4"}),
)

# https://docs.cloud.google.com/tpu/docs/v5e (16 GiB a chip, 1 core)
V5E = Generation(
    name="v5e",
    gke_accelerator="tpu-v5-lite-podslice",
    ray_version="v5litepod",
    ray_accelerator_type="TPU-V5LITEPOD",
    compiler_name="v5e",
    hbm_gib_per_chip=16,
    suffix_per_chip=1,
    devices_per_chip=1,
    machine_types=(
        MachineType("ct5lp-hightpu-1t", 1, "1x1"),
        MachineType("ct5lp-hightpu-4t", 4, "2x2", joins=True),
        MachineType("ct5lp-hightpu-8t", 8, "2x4"),
    ),
    small=_FLAT,
    max_chips=256,
    named=(),
    aliases=("v5litepod", "v5lite", "v5-lite", "tpu-v5e", "tpu-v5litepod", "tpu-v5-lite-podslice", "ct5lp"),
    ray_named=_FLAT_RAY,
)

# https://docs.cloud.google.com/tpu/docs/v5p (95 GiB a chip, 2 cores); GKE's page names 16x16x24 as the largest.
V5P = Generation(
    name="v5p",
    gke_accelerator="tpu-v5p-slice",
    ray_version="v5p",
    ray_accelerator_type="TPU-V5P",
    compiler_name="v5p",
    hbm_gib_per_chip=95,
    suffix_per_chip=2,
    devices_per_chip=1,
    machine_types=(MachineType("ct5p-hightpu-4t", 4, "2x2x1", joins=True),),
    small=_SOLID,
    max_chips=6144,
    named=(*_SOLID_NAMED, "12x16x16", "16x16x16", "16x16x24"),
    aliases=("tpu-v5p", "tpu-v5p-slice", "ct5p"),
    ray_box=(16, 16, 24),
    ray_named=frozenset({"2x2x1", "2x2x2", "2x2x4", "2x4x4"}),
)

# https://docs.cloud.google.com/tpu/docs/v6e (32 GiB a chip, 1 core)
V6E = Generation(
    name="v6e",
    gke_accelerator="tpu-v6e-slice",
    ray_version="v6e",
    ray_accelerator_type="TPU-V6E",
    compiler_name="v6e",
    hbm_gib_per_chip=32,
    suffix_per_chip=1,
    devices_per_chip=1,
    machine_types=(
        MachineType("ct6e-standard-1t", 1, "1x1"),
        MachineType("ct6e-standard-4t", 4, "2x2", joins=True),
        MachineType("ct6e-standard-8t", 8, "2x4"),
    ),
    small=_FLAT,
    max_chips=256,
    named=(),
    aliases=("trillium", "tpu-v6e", "tpu-v6e-slice", "ct6e"),
    ray_named=_FLAT_RAY,
)

# https://docs.cloud.google.com/tpu/docs/tpu7x (192 GiB a chip, 2 cores; at most 144 cubes) and
# https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood
V7X = Generation(
    name="v7x",
    gke_accelerator="tpu7x",
    ray_version="v7x",
    ray_accelerator_type="TPU-V7X",
    compiler_name="tpu7x",
    hbm_gib_per_chip=192,
    suffix_per_chip=2,
    devices_per_chip=2,
    machine_types=(
        MachineType("tpu7x-standard-1t", 1, "1x1x1"),
        MachineType("tpu7x-standard-4t", 4, "2x2x1", joins=True),
    ),
    small=("1x1x1", *_SOLID),
    max_chips=9216,
    named=(*_SOLID_NAMED, "12x16x16", "16x16x16", "16x16x24", "16x24x24"),
    aliases=("tpu7x", "tpu-v7x", "ironwood"),
    ray_named=frozenset({"2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16"}),
)

GENERATIONS: dict[str, Generation] = {table.name: table for table in (V4, V5E, V5P, V6E, V7X)}
