"""What Google makes of a machine type: chips, shapes, zones, disks.

Typed from GKE's cluster autoscaler (package k8s.io/gke-autoscaling/cluster-autoscaler/pkg/cloudprovider/gke/
machinetypes: `singleHostTopologyMap` and the boot disks of each family), https://docs.cloud.google.com/tpu/docs/v4,
v5e, v5p, v6e, tpu7x, and https://docs.cloud.google.com/tpu/docs/regions-zones. It does not use the project's own
catalogue, so that a mistake there is seen.
"""

import re
from dataclasses import dataclass
from math import prod

PERSISTENT = ("pd-standard", "pd-balanced", "pd-ssd")
HYPERDISK = ("hyperdisk-balanced",)
BALANCED = ("pd-balanced", "pd-ssd")


@dataclass(frozen=True)
class TpuMachine:
    """A machine type with chips; memory in GB."""

    generation: str
    accelerator: str
    chips: int
    cpus: int
    memory: int
    topology: str
    disks: tuple[str, ...]


_V4 = ("v4", "tpu-v4-podslice")
_V5E = ("v5e", "tpu-v5-lite-podslice")
_V5P = ("v5p", "tpu-v5p-slice")
_V6E = ("v6e", "tpu-v6e-slice")
_V7X = ("v7x", "tpu7x")
TPU_MACHINES = {
    "ct4p-hightpu-4t": TpuMachine(*_V4, 4, 240, 407, "2x2x1", (*PERSISTENT, *HYPERDISK)),
    "ct5lp-hightpu-1t": TpuMachine(*_V5E, 1, 24, 48, "1x1", BALANCED),
    "ct5lp-hightpu-4t": TpuMachine(*_V5E, 4, 112, 192, "2x2", BALANCED),
    "ct5lp-hightpu-8t": TpuMachine(*_V5E, 8, 224, 384, "2x4", BALANCED),
    "ct5p-hightpu-4t": TpuMachine(*_V5P, 4, 208, 448, "2x2x1", BALANCED),
    "ct6e-standard-1t": TpuMachine(*_V6E, 1, 44, 176, "1x1", HYPERDISK),
    "ct6e-standard-4t": TpuMachine(*_V6E, 4, 180, 720, "2x2", HYPERDISK),
    "ct6e-standard-8t": TpuMachine(*_V6E, 8, 180, 1440, "2x4", HYPERDISK),
    "tpu7x-standard-1t": TpuMachine(*_V7X, 1, 56, 248, "1x1x1", HYPERDISK),
    "tpu7x-standard-4t": TpuMachine(*_V7X, 4, 224, 960, "2x2x1", HYPERDISK),
}

TPU_ZONES = {
    "v4": ("us-central2-b",),
    "v5e": ("us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a", "europe-west4-b"),
    "v5p": ("us-central1-a", "us-east5-a", "europe-west4-b"),
    "v6e": (
        "us-central1-b",
        "us-east1-d",
        "us-east5-a",
        "us-east5-b",
        "europe-west4-a",
        "asia-northeast1-b",
        "southamerica-west1-a",
        "us-central2-b",
    ),
    "v7x": ("us-central1-c", "us-central1-ai1a"),
}
"""us-central2-b for v6e: https://github.com/keras-team/kinetic/issues/305 lists what that zone offers."""

SQUARES = ("2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
SMALL_CUBES = ("2x2x2", "2x2x4", "2x4x4", "4x4x4")
MOST_CHIPS = {"v4": 3072, "v5p": 6144, "v7x": 9216}

FAMILIES = ("e2", "n1", "n2", "n2d", "n4", "t2d", "c2", "c2d", "c3", "c3d", "c4", "c4d")
FEWER_FAMILIES = {"us-central2-b": ("f1", "g1", "n1", "n2", "n2d", "n4", "t2d")}
"""https://github.com/keras-team/kinetic/issues/305"""
ONLY_HYPERDISK = ("n4", "c4", "c4d")
"""https://docs.cloud.google.com/compute/docs/general-purpose-machines#supported_disk_types_for_n4 and c4"""
SHARED_CORE = {"e2-micro": (2, 1), "e2-small": (2, 2), "e2-medium": (2, 4), "g1-small": (1, 2), "f1-micro": (1, 1)}
GB_PER_CPU = {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0}


def chips(topology: str) -> int:
    """Chips of a topology such as `4x4`."""
    return prod(int(side) for side in topology.split("x"))


def hosts(machine: TpuMachine, topology: str) -> int:
    """Machines of one slice: GKE's gang size."""
    return chips(topology) // machine.chips


def makes_slices(machine_type: str, topology: str) -> bool:
    """Whether GKE makes multi-host slices of this topology from these machines.

    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus: only machines with four chips; the sides of
    large cubes are multiples of 4 in rising order.
    """
    machine = TPU_MACHINES[machine_type]
    if machine.chips != 4 or not re.fullmatch(r"\d+(x\d+){1,2}", topology):
        return False
    if machine.generation in ("v5e", "v6e"):
        return topology in SQUARES
    sides = [int(side) for side in topology.split("x")]
    if len(sides) != 3 or topology in SMALL_CUBES:
        return topology in SMALL_CUBES
    fits = all(side % 4 == 0 for side in sides) and sides == sorted(sides)
    return fits and prod(sides) <= MOST_CHIPS[machine.generation]


def in_zone(machine_type: str, zone: str) -> bool:
    """Whether the zone offers the machine type."""
    if machine_type in TPU_MACHINES:
        return zone in TPU_ZONES[TPU_MACHINES[machine_type].generation]
    families = FEWER_FAMILIES.get(zone, (*FAMILIES, "f1", "g1"))
    return machine_type.partition("-")[0] in families and _size(machine_type) is not None


def _size(machine_type: str) -> tuple[int, int] | None:
    if machine_type in SHARED_CORE:
        return SHARED_CORE[machine_type]
    found = re.fullmatch(r"[a-z]\d[a-z]?-(standard|highmem|highcpu)-(\d+)", machine_type)
    if found is None:
        return None
    cpus = int(found[2])
    return cpus, round(cpus * GB_PER_CPU[found[1]])


def size(machine_type: str) -> tuple[int, int]:
    """Virtual CPUs and memory in GB of a machine type that a zone offers."""
    tpu = TPU_MACHINES.get(machine_type)
    if tpu is not None:
        return tpu.cpus, tpu.memory
    return _size(machine_type) or (2, 4)


def boot_disks(machine_type: str) -> tuple[str, ...]:
    """Boot disks that a machine type takes, its default first."""
    tpu = TPU_MACHINES.get(machine_type)
    if tpu is not None:
        return ("pd-balanced", *tpu.disks) if "pd-balanced" in tpu.disks else tpu.disks
    if machine_type.partition("-")[0] in ONLY_HYPERDISK:
        return HYPERDISK
    return ("pd-balanced", *PERSISTENT)
