"""The device plugin of an emulated TPU host, against a kubelet's side of the protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import grpc
import pytest

from tests.cluster.kubelet import WAIT_S, kubelet, watched
from tests.rig.nodes.apis import DEVICE_PLUGIN
from tests.rig.nodes.device_plugin import FOLDER, DevicePlugin, Mount, registered
from tests.rig.nodes.tpu_env import PART_BOUNDS, RequestError, check_request, chip_ids, environment
from tests.rig.nodes.wire import Json
from workloads.spec import Slice, catalogue, resolve_slice

IP = "10.88.0.7"


def ask(root: Path, registration: Json, method: str, request: Json) -> Json:
    return DEVICE_PLUGIN.call(root / FOLDER / registration["endpoint"], "DevicePlugin", method, request, WAIT_S)


def containers(*chips: tuple[str, ...]) -> Json:
    return {"container_requests": [{"devices_ids": list(one)} for one in chips]}


@contextmanager
def host(root: Path, shape: Slice, *mounts: Mount) -> Iterator[tuple[DevicePlugin, Json, "Queue[Json]"]]:
    """A plugin, what it registered with, and what it registers with later."""
    with kubelet(root / FOLDER) as taken, registered(DevicePlugin(shape, IP, mounts), root) as plugin:
        yield plugin, taken.get(timeout=WAIT_S), taken


def test_a_container_that_asks_for_all_chips_gets_their_environment_and_the_mounts(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "site", "/site", read_only=False)
    with host(tmp_path, resolve_slice("v6e", "4x4"), mount) as (_, registration, _):
        assert registration["resource_name"] == "google.com/tpu"
        assert registration["version"] == "v1beta1"
        options = ask(tmp_path, registration, "GetDevicePluginOptions", {})
        assert options == {"pre_start_required": False, "get_preferred_allocation_available": False}
        (given,) = ask(tmp_path, registration, "Allocate", containers(("0", "1", "2", "3")))["container_responses"]
    assert given["envs"] == environment(resolve_slice("v6e", "4x4"), IP)
    mounted = {"container_path": "/site", "host_path": str(tmp_path / "site"), "read_only": False}
    assert given["mounts"] == [mounted]
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_chip_that_breaks_is_told_and_not_given(tmp_path: Path) -> None:
    with host(tmp_path, resolve_slice("v5e", "2x2")) as (plugin, registration, _):
        with watched(tmp_path / FOLDER / registration["endpoint"]) as lists:
            assert next(lists) == [{"ID": chip, "health": "Healthy"} for chip in "0123"]
            plugin.mark("2", healthy=False)
            assert [one["health"] for one in next(lists)] == ["Healthy", "Healthy", "Unhealthy", "Healthy"]
            with pytest.raises(grpc.RpcError) as refused:
                ask(tmp_path, registration, "Allocate", containers(("0", "1", "2", "3")))
            assert refused.value.details() == "invalid allocation request with unhealthy device 2"
            plugin.mark("2", healthy=True)
            assert {one["health"] for one in next(lists)} == {"Healthy"}
        assert ask(tmp_path, registration, "Allocate", containers(("0", "1", "2", "3")))["container_responses"]


def test_part_of_a_host_is_refused_in_the_words_of_googles_plugin(tmp_path: Path) -> None:
    with host(tmp_path, resolve_slice("v4", "2x2x2")) as (_, registration, _), pytest.raises(grpc.RpcError) as refused:
        ask(tmp_path, registration, "Allocate", containers(("accel0", "accel1")))
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == (
        "invalid TPU chip count request, you must request all 4 chips on this node together"
    )


def test_a_kubelet_that_starts_again_is_registered_with_again(tmp_path: Path) -> None:
    with registered(DevicePlugin(resolve_slice("v6e", "1x1"), IP), tmp_path):
        endpoints = set()
        for _ in range(3):
            with kubelet(tmp_path / FOLDER) as taken:
                registration = taken.get(timeout=WAIT_S)
                with watched(tmp_path / FOLDER / registration["endpoint"]) as lists:
                    assert [one["ID"] for one in next(lists)] == ["0"]
            endpoints.add(registration["endpoint"])
    assert len(endpoints) == 3
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_plugin_whose_socket_is_gone_comes_back_under_the_same_kubelet(tmp_path: Path) -> None:
    with host(tmp_path, resolve_slice("v6e", "2x4")) as (_, registration, taken):
        (tmp_path / FOLDER / registration["endpoint"]).unlink()
        again = taken.get(timeout=WAIT_S)
        chips = tuple(str(number) for number in range(8))
        assert ask(tmp_path, again, "Allocate", containers(chips))["container_responses"]


def test_a_folder_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    long = tmp_path / ("kubelet-" * 12)
    with (
        pytest.raises(ValueError, match="at most 107"),
        registered(DevicePlugin(resolve_slice("v6e", "1x1"), IP), long),
    ):
        pass


def test_containers_share_a_v7x_host_by_numa_nodes(tmp_path: Path) -> None:
    one, two, three, four = chip_ids(resolve_slice("v7x", "2x2x1"))
    with host(tmp_path, resolve_slice("v7x", "2x2x1")) as (_, registration, _):
        with watched(tmp_path / FOLDER / registration["endpoint"]) as lists:
            nodes = [device["topology"]["nodes"] for device in next(lists)]
        assert nodes == [[{"ID": "0"}], [{"ID": "0"}], [{"ID": "1"}], [{"ID": "1"}]]
        answers = ask(tmp_path, registration, "Allocate", containers((one, two), (three, four)))["container_responses"]
        with pytest.raises(grpc.RpcError, match="not NUMA aligned"):
            ask(tmp_path, registration, "Allocate", containers((two, three)))
        with pytest.raises(grpc.RpcError, match="invalid chip count for tpu7x: 3"):
            ask(tmp_path, registration, "Allocate", containers((one, two, three)))
    assert [answer["envs"]["WORKLOAD_NIC_PREFERRED_NUMA"] for answer in answers] == ["0", "1"]
    assert {answer["envs"]["TPU_CHIPS_PER_HOST_BOUNDS"] for answer in answers} == {"1,2,1"}
    assert {answer["envs"]["TPU_HOST_BOUNDS"] for answer in answers} == {"2,1,1"}


def test_chips_that_are_not_there_are_not_given() -> None:
    with pytest.raises(RequestError, match="non-existing device 7"):
        check_request(resolve_slice("v6e", "1x1"), ["7"], set())
    with pytest.raises(RequestError, match="between 1 and 4 chips"):
        check_request(resolve_slice("v7x", "2x2x1"), [], set())


SINGLE = {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
ROWS = [
    # generation, topology, machine; accelerator type, hosts, chips of a host, wrap; what else there is
    ("v4", "2x2x1", None, "v4-8", "1,1,1", "2,2,1", "false,false,false", SINGLE),
    ("v4", "2x2x2", None, "v4-16", "1,1,2", "2,2,1", "false,false,false", {}),
    ("v4", "4x4x4", None, "v4-128", "2,2,4", "2,2,1", "true,true,true", {"ENABLE_ICI_RESILIENCY": "true"}),
    ("v5e", "1x1", None, "v5litepod-1", "1,1,1", "1,1,1", "false,false,false", SINGLE),
    ("v5e", "2x4", None, "v5litepod-8", "1,1,1", "2,4,1", "false,false,false", SINGLE),
    ("v5e", "2x4", "ct5lp-hightpu-4t", "v5litepod-8", "1,2,1", "2,2,1", "false,false,false", {}),
    ("v5e", "8x16", None, "v5litepod-128", "4,8,1", "2,2,1", "false,true,false", {}),
    ("v5p", "2x2x2", None, "v5p-16", "1,1,2", "2,2,1", "false,false,false", {}),
    ("v5p", "4x4x8", None, "v5p-256", "2,2,8", "2,2,1", "true,true,true", {"ENABLE_ICI_RESILIENCY": "true"}),
    ("v6e", "2x2", None, "v6e-4", "1,1,1", "2,2,1", "false,false,false", SINGLE),
    ("v6e", "4x4", None, "v6e-16", "2,2,1", "2,2,1", "false,false,false", {}),
    ("v6e", "16x16", None, "v6e-256", "8,8,1", "2,2,1", "true,true,false", {}),
    ("v7x", "1x1x1", None, "tpu7x-2", "1,1,1", "1,1,1", "false,false,false", {}),
    ("v7x", "2x2x2", None, "tpu7x-16", "1,1,2", "2,2,1", "false,false,false", {"WORKLOAD_NIC_PREFERRED_NUMA": "0,1"}),
]


@pytest.mark.parametrize(("generation", "topology", "machine", "kind", "hosts", "chips", "wrap", "more"), ROWS)
def test_the_environment_is_the_one_of_googles_plugin(
    generation: str, topology: str, machine: str | None, kind: str, hosts: str, chips: str, wrap: str, more: Json
) -> None:
    shape = resolve_slice(generation, topology, machine)
    ports = ",".join(str(8431 + number) for number in range(shape.devices_per_host))
    assert environment(shape, IP) == {
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": ports,
        "TPU_TOPOLOGY": topology,
        "TPU_ACCELERATOR_TYPE": kind,
        "TPU_HOST_BOUNDS": hosts,
        "HOST_BOUNDS": hosts,
        "TPU_CHIPS_PER_HOST_BOUNDS": chips,
        "CHIPS_PER_HOST_BOUNDS": chips,
        "TPU_TOPOLOGY_WRAP": wrap,
        "WRAP": wrap,
        "TPU_TOPOLOGY_ALT": "false",
        "ALT": "false",
        "VBAR_CONTROL_SERVICE_URL": f"{IP}:8353",
        **more,
    }


def test_bounds_of_every_slice_multiply_to_its_hosts_and_chips() -> None:
    for shape in catalogue():
        env = environment(shape, IP)
        assert _product(env["TPU_HOST_BOUNDS"]) == shape.hosts, shape
        assert _product(env["TPU_CHIPS_PER_HOST_BOUNDS"]) == shape.chips_per_host, shape
        assert ("TPU_WORKER_ID" in env) == (not shape.multi_host and shape.generation != "v7x"), shape
        if shape.chips_per_host in PART_BOUNDS:
            # Google's plugin knows one shape for each number of chips, wherever they are.
            assert PART_BOUNDS[shape.chips_per_host] == shape.compiler_host_bounds


def _product(bounds: str) -> int:
    x, y, z = (int(side) for side in bounds.split(","))
    return x * y * z
