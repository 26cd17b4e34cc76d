"""The names and numbers of the catalogue against Ray's own tables."""

import pytest
from ray._private.accelerators import tpu
from ray.util import accelerators
from ray.util.tpu import get_tpu_worker_resources

from workloads.spec import catalogue
from workloads.spec.generations import GENERATIONS

MANAGER = tpu.TPUAcceleratorManager
ROWS = catalogue()
TAKEN = [row for row in ROWS if row.ray_accepts]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_pod_type_and_what_ray_accepts(generation: str) -> None:
    rows = [row for row in ROWS if row.generation == generation]
    assert rows
    for row in rows:
        assert row.ray_pod_type == tpu.infer_tpu_pod_type_from_topology(row.topology, row.ray_accelerator_type)
        assert row.ray_accepts == MANAGER.is_valid_tpu_accelerator_topology(row.ray_accelerator_type, row.topology)
        assert tpu.get_total_chips_from_accelerator_type(row.ray_pod_type) == row.chips


def test_accelerator_types_are_rays() -> None:
    known = {getattr(accelerators, name) for name in dir(accelerators) if name.startswith("GOOGLE_TPU")}
    assert {row.ray_accelerator_type for row in ROWS} <= known


def test_hosts_are_rays_workers() -> None:
    for row in TAKEN:
        workers, resources = get_tpu_worker_resources(
            row.topology, row.ray_accelerator_type, chips_per_vm=row.chips_per_host
        )
        assert (workers, resources["TPU"]) == (row.hosts, row.chips_per_host)


def test_without_a_machine_ray_takes_the_one_with_fewest_hosts() -> None:
    for row in TAKEN:
        workers, _ = get_tpu_worker_resources(row.topology, row.ray_accelerator_type)
        if (row.topology, row.chips_per_host) != ("2x4", 4):
            assert workers == row.hosts
        else:
            assert (workers, row.hosts) == (1, 2)


def test_head_resource_is_rays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_NAME", "pool-0")
    monkeypatch.setenv("TPU_WORKER_ID", "0")
    for row in TAKEN:
        monkeypatch.setenv("TPU_ACCELERATOR_TYPE", row.ray_pod_type)
        monkeypatch.setenv("TPU_TOPOLOGY", row.topology)
        resources = MANAGER.get_current_node_additional_resources()
        assert resources is not None
        assert resources[row.ray_head_resource] == 1
