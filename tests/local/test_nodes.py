"""Environment, address and command of emulated hosts."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.platforms.local.folders import Folders
from infra.platforms.local.nodes import NodePorts, head_command, host_command, loopback, node_environment, place_of
from infra.platforms.local.spec import ClusterSpec, LocalPool
from infra.stack import parse_stack, read_stack_file
from workloads.spec import catalogue, resolve_slice

FOLDERS = Folders("dev", Path("/state/local/dev"))
POOL = LocalPool("train", resolve_slice("v6e", "4x4"), 2)
OUTER = {
    "PATH": "/usr/bin",
    "HOME": "/home/a",
    "PULUMI_CONFIG_PASSPHRASE": "secret",
    "RAY_ADDRESS": "10.0.0.1:6379",
    "TPU_NAME": "other",
    "TPU_RAY_CACHE": "/cache",
    "XLA_FLAGS": "--other",
}


def test_a_host_sees_what_the_webhook_of_gke_would_give_it() -> None:
    host = POOL.hosts()[6]
    environment = node_environment(OUTER, FOLDERS, "s1", Path("/venv/bin"), host)
    expected = {
        "TPU_NAME": "train-1",
        "TPU_WORKER_ID": "2",
        "TPU_ACCELERATOR_TYPE": "v6e-16",
        "TPU_TOPOLOGY": "4x4",
        "TPU_RAY_POOL": "train",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": "/state/local/dev/token",
        "TPU_RAY_CACHE": "/cache",
        "PATH": "/venv/bin:/usr/bin",
        "HOME": "/home/a",
    }
    assert expected.items() <= environment.items()


@pytest.mark.parametrize("host", [None, POOL.hosts()[0]])
def test_nothing_of_the_deployment_or_of_another_ray_reaches_a_node(host: object) -> None:
    environment = node_environment(OUTER, FOLDERS, "s1", Path("/venv/bin"), host)  # type: ignore[arg-type]
    assert "PULUMI_CONFIG_PASSPHRASE" not in environment
    assert "RAY_ADDRESS" not in environment


def test_the_head_has_no_tpu() -> None:
    environment = node_environment(OUTER, FOLDERS, "s1", Path("/venv/bin"), None)
    assert not [key for key in environment if key.startswith("TPU_") and not key.startswith("TPU_RAY_")]


def test_a_host_carries_its_chips_and_its_pool() -> None:
    command = host_command(Path("/venv/bin/ray"), FOLDERS, POOL.hosts()[0], 1, NodePorts(4000), "127.64.0.1:5")
    assert '--resources={"TPU": 4, "pool:train": 1000}' in command
    assert f"--node-ip-address={loopback(FOLDERS.digest, 1)}" in command


def test_the_dashboard_listens_on_loopback_only() -> None:
    command = head_command(Path("/venv/bin/ray"), FOLDERS, 8265, NodePorts(4000, 4001, 4002))
    assert "--dashboard-host=127.0.0.1" in command


def test_rays_sockets_have_paths_that_fit() -> None:
    longest_role = LocalPool("p" * 36, resolve_slice("v6e", "16x16"), 1000).hosts()[-1]
    command = host_command(Path("/r"), FOLDERS, longest_role, 1015, NodePorts(1), "127.64.0.1:5")
    temp = next(word for word in command if word.startswith("--temp-dir=")).removeprefix("--temp-dir=")
    assert len(f"{temp}/session_2026-12-02_03-26-26_403840_4194304/sockets/plasma_store.1000") < 107


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_node_of_a_cluster_has_its_own_loopback_address(digest: int) -> None:
    addresses = [loopback(digest, place) for place in range(254 * 4)]
    assert len(set(addresses)) == len(addresses)
    assert [place_of(address) for address in addresses] == list(range(254 * 4))
    parts = [[int(part) for part in address.split(".")] for address in addresses]
    assert all(p[0] == 127 and 64 <= p[1] < 96 and 0 <= p[2] < 256 and 1 <= p[3] <= 254 for p in parts)


@settings(deadline=None)
@given(st.sampled_from(catalogue()), st.integers(1, 3))
def test_a_pool_has_every_host_of_every_slice_once(shape: object, slices: int) -> None:
    pool = LocalPool("a", shape, slices)  # type: ignore[arg-type]
    roles = [host.role for host in pool.hosts()]
    assert len(roles) == len(set(roles)) == slices * pool.slice.hosts


def test_a_cluster_survives_its_own_json() -> None:
    spec = ClusterSpec("dev", 8000, 8265, 16, (POOL,))
    assert ClusterSpec.from_json(spec.to_json()) == spec


def test_a_stack_gives_the_same_cluster_as_its_recorded_json() -> None:
    stack = parse_stack(read_stack_file(Path(__file__).parents[2] / "stacks" / "Pulumi.local.yaml"))
    spec = ClusterSpec.of("local", stack)
    assert ClusterSpec.from_json(spec.to_json()).to_json() == spec.to_json()
