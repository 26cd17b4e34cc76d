"""The double's own table, against figures that were read or measured elsewhere."""

import pytest

from tests.rig.cloud import machines


@pytest.mark.parametrize(
    ("machine", "topology", "hosts"),
    [
        ("ct6e-standard-4t", "2x4", 2),
        ("ct6e-standard-4t", "4x4", 4),
        ("ct5lp-hightpu-4t", "16x16", 64),
        ("ct4p-hightpu-4t", "2x2x2", 2),
        ("ct5p-hightpu-4t", "16x16x24", 1536),
        ("tpu7x-standard-4t", "2x2x2", 2),
        ("tpu7x-standard-4t", "4x4x4", 16),
        ("tpu7x-standard-4t", "16x24x24", 2304),
    ],
)
def test_slices_have_their_hosts(machine: str, topology: str, hosts: int) -> None:
    assert machines.makes_slices(machine, topology)
    assert machines.hosts(machines.TPU_MACHINES[machine], topology) == hosts


@pytest.mark.parametrize(
    ("machine", "topology"),
    [
        ("ct6e-standard-4t", "2x8"),
        ("ct6e-standard-4t", "32x16"),
        ("ct6e-standard-8t", "4x4"),
        ("ct5lp-hightpu-1t", "4x4"),
        ("ct5p-hightpu-4t", "4x4"),
        ("ct4p-hightpu-4t", "16x16x16"),
        ("tpu7x-standard-4t", "2x4x8"),
        ("tpu7x-standard-4t", "8x4x4"),
        ("tpu7x-standard-4t", "2x2"),
        ("tpu7x-standard-4t", "many"),
    ],
)
def test_other_shapes_are_no_slices(machine: str, topology: str) -> None:
    assert not machines.makes_slices(machine, topology)


def test_zones_have_their_machines() -> None:
    assert machines.in_zone("ct6e-standard-4t", "us-east5-b")
    assert not machines.in_zone("ct6e-standard-4t", "us-east5-c")
    assert machines.in_zone("tpu7x-standard-4t", "us-central1-c")
    assert machines.in_zone("e2-standard-4", "us-east5-b")
    assert not machines.in_zone("e2-standard-4", "us-central2-b")
    assert machines.in_zone("n2-standard-4", "us-central2-b")
    assert not machines.in_zone("n2-enormous-4", "us-east5-b")


def test_machines_take_their_disks() -> None:
    assert machines.boot_disks("ct6e-standard-8t") == ("hyperdisk-balanced",)
    assert machines.boot_disks("tpu7x-standard-4t") == ("hyperdisk-balanced",)
    assert "hyperdisk-balanced" not in machines.boot_disks("ct5p-hightpu-4t")
    assert machines.boot_disks("ct5lp-hightpu-4t")[0] == "pd-balanced"
    assert machines.boot_disks("c4-standard-8") == ("hyperdisk-balanced",)
