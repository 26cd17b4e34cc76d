"""Which slices are whole and free, from Ray's node table."""

from typing import Any

import pytest

from workloads.slices_seen import describe, sort_out
from workloads.spec import resolve_slice

SLICE = resolve_slice("v6e", "4x4")


def host(name: str, worker_id: int, pool: str = "train", **changes: Any) -> dict[str, Any]:
    node = {
        "NodeID": f"{name}.{worker_id}",
        "Alive": True,
        "Resources": {"TPU": 4.0, f"pool:{pool}": 1000.0},
        "Labels": {
            "ray.io/tpu-slice-name": name,
            "ray.io/tpu-worker-id": str(worker_id),
            "ray.io/tpu-topology": "4x4",
            "ray.io/tpu-pod-type": "v6e-16",
        },
    }
    for key, value in changes.items():
        node[key] = {**node[key], **value} if isinstance(value, dict) else value  # type: ignore[dict-item]
    return node


def whole(name: str, **changes: Any) -> list[dict[str, Any]]:
    return [host(name, worker_id, **changes) for worker_id in range(4)]


def all_free(nodes: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    free = {node["NodeID"]: dict(node["Resources"]) for node in nodes}
    for node_id, resources in free.items():
        if node_id.endswith(".0"):
            resources["TPU-v6e-16-head"] = 1.0
    return free


def test_a_whole_free_slice() -> None:
    nodes = list(reversed(whole("a"))) + whole("b")
    a, b = sort_out(SLICE, "train", nodes, all_free(nodes), {})
    assert [a.name, b.name] == ["a", "b"]
    assert a.intact
    assert a.tpus_free
    assert a.head_free
    assert [one.worker_id for one in a.hosts] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "nodes",
    [
        whole("a", pool="other"),
        whole("a", Alive=False),
        whole("a", Labels={"ray.io/tpu-topology": "2x2"}),
        whole("a", Labels={"ray.io/tpu-pod-type": "v5litepod-16"}),
        [{"NodeID": "cpu", "Alive": True, "Resources": {"CPU": 4.0}, "Labels": {}}],
    ],
)
def test_hosts_of_other_pools_and_shapes_are_no_hosts_of_it(nodes: list[dict[str, Any]]) -> None:
    assert sort_out(SLICE, "train", nodes, all_free(nodes), {}) == ()


@pytest.mark.parametrize(
    "nodes",
    [
        whole("a")[1:],
        whole("a")[:3],
        [*whole("a")[:3], host("a", 3, Alive=False)],
        [*whole("a")[:3], host("a", 3, Resources={"TPU": 2.0})],
        [*whole("a")[:3], host("a", 2)],
        [*whole("a"), host("a", 3)],
    ],
)
def test_a_slice_without_all_its_chips_is_not_intact(nodes: list[dict[str, Any]]) -> None:
    (seen,) = sort_out(SLICE, "train", nodes, all_free(nodes), {})
    assert not seen.intact
    assert "broken" in describe(seen, SLICE)


def test_a_used_up_resource_is_missing_from_rays_table() -> None:
    nodes = whole("a")
    free = all_free(nodes)
    del free["a.2"]["TPU"]
    del free["a.0"]["TPU-v6e-16-head"]
    groups = {
        "g" * 36: {"name": "service demo holds 1", "state": "CREATED", "bundles_to_node_id": {0: "a.2"}},
        "h" * 36: {"name": "", "state": "CREATED", "bundles_to_node_id": {0: "a.0"}},
        "i" * 36: {"name": "gone", "state": "REMOVED", "bundles_to_node_id": {0: "a.1"}},
    }
    (seen,) = sort_out(SLICE, "train", nodes, free, groups)
    assert seen.intact
    assert not seen.tpus_free
    assert not seen.head_free
    assert describe(seen, SLICE) == f"a is busy: held by placement group {'h' * 12}, service demo holds 1"
