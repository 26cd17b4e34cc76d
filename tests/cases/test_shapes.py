"""Fields of a slice that others had to write three times, and names that meant chips here and cores there."""

from typing import Any

import pytest

from infra.plan.node_pools import Fixed, node_pools
from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.stacks import config, mistakes, pool
from workloads.spec import Slice

ZONES = {
    "v4": "us-central2-b",
    "v5e": "us-central1-a",
    "v5p": "us-central1-a",
    "v6e": "us-east5-b",
    "v7x": "us-central1-c",
}


def made_of(generation: str, topology: str, **keys: object) -> tuple[Slice, int, dict[str, Any]]:
    """The slice, the nodes of its node pool, and the worker group of a run on it."""
    zone = ZONES[generation]
    stack = parse_stack(config(pool(generation, topology, **keys), zone=zone, region=zone.rpartition("-")[0]))
    assert isinstance(stack.platform, GkePlatform)
    (one,) = node_pools(stack.pools[0], zone)
    assert isinstance(one.size, Fixed)
    (manifest,) = manifests(stack.platform, stack).values()
    spec: Any = manifest["spec"]
    (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    return stack.pools[0].slice, one.size.nodes, group


# GKE's label, topology, machine type: chips, hosts, google.com/tpu of a pod, Ray's resource of the first host.
ROWS = [
    ("v6e", "tpu-v6e-slice", "2x2", "ct6e-standard-4t", 4, 1, 4, "TPU-v6e-4-head"),
    ("v6e", "tpu-v6e-slice", "2x4", "ct6e-standard-8t", 8, 1, 8, "TPU-v6e-8-head"),
    ("v6e", "tpu-v6e-slice", "2x4", "ct6e-standard-4t", 8, 2, 4, "TPU-v6e-8-head"),
    ("v6e", "tpu-v6e-slice", "4x4", "ct6e-standard-4t", 16, 4, 4, "TPU-v6e-16-head"),
    ("v5e", "tpu-v5-lite-podslice", "2x4", "ct5lp-hightpu-8t", 8, 1, 8, "TPU-v5litepod-8-head"),
    ("v5e", "tpu-v5-lite-podslice", "2x4", "ct5lp-hightpu-4t", 8, 2, 4, "TPU-v5litepod-8-head"),
    ("v5e", "tpu-v5-lite-podslice", "4x4", "ct5lp-hightpu-4t", 16, 4, 4, "TPU-v5litepod-16-head"),
    ("v4", "tpu-v4-podslice", "2x2x2", "ct4p-hightpu-4t", 8, 2, 4, "TPU-v4-16-head"),
    ("v5p", "tpu-v5p-slice", "2x2x2", "ct5p-hightpu-4t", 8, 2, 4, "TPU-v5p-16-head"),
    ("v7x", "tpu7x", "2x2x2", "tpu7x-standard-4t", 8, 2, 4, "TPU-v7x-16-head"),
    ("v7x", "tpu7x", "4x4x4", "tpu7x-standard-4t", 64, 16, 4, "TPU-v7x-128-head"),
]


@pytest.mark.parametrize(("generation", "label", "topology", "machine", "chips", "hosts", "tpu", "head"), ROWS)
def test_hosts_chips_and_names_of_one_slice_agree_wherever_they_stand(
    generation: str, label: str, topology: str, machine: str, chips: int, hosts: int, tpu: int, head: str
) -> None:
    """ray#62526, kuberay#3258, ray#62786, ray#48201, xpk#751: numOfHosts, nodes, chips of a pod and Ray's name."""
    shape, nodes, group = made_of(generation, topology, machine_type=machine)
    assert (shape.chips, shape.hosts, shape.chips_per_host) == (chips, hosts, tpu)
    assert f"TPU-{shape.ray_pod_type}-head" == head
    # xpk#751: the machines come as a gang of exactly so many.
    assert nodes == group["numOfHosts"] == hosts
    pod = group["template"]["spec"]
    (container,) = pod["containers"]
    for amounts in (container["resources"]["requests"], container["resources"]["limits"]):
        assert amounts["google.com/tpu"] == str(tpu)
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-accelerator"] == label
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == topology
    assert group["groupName"] == "a-s0"


@pytest.mark.parametrize(
    ("generation", "topology", "machine", "right"),
    [
        ("v6e", "2x2", "ct6e-standard-8t", "ct6e-standard-4t"),
        ("v6e", "4x4", "ct6e-standard-8t", "ct6e-standard-4t"),
        ("v6e", "4x4", "ct5lp-hightpu-4t", "ct6e-standard-4t"),
        ("v5e", "2x4", "ct5lp-hightpu-1t", "ct5lp-hightpu-8t"),
        ("v5e", "2x4", "ct5l-hightpu-8t", "ct5lp-hightpu-8t"),
        ("v5p", "2x2x1", "ct5p-hightpu-1t", "ct5p-hightpu-4t"),
    ],
)
def test_a_machine_that_does_not_make_the_topology_is_refused(
    generation: str, topology: str, machine: str, right: str
) -> None:
    """ai-on-gke kuberay-tpu-webhook/Troubleshooting.md: admitted with one host, JAX then finds no TPU."""
    found = mistakes(config(pool(generation, topology, machine_type=machine)))
    assert {key: problem.nearest for key, problem in found.items()} == {"pools[0].machine_type": right}


@pytest.mark.parametrize("key", ["numOfHosts", "num_hosts", "hosts", "nodes", "node_count", "initialNodeCount"])
@pytest.mark.parametrize("asked", [2, 4])
def test_hosts_are_not_asked_and_the_error_says_how_many_there_are(key: str, asked: int) -> None:
    """ai-on-gke kuberay-tpu-webhook/Troubleshooting.md: `Number of workers ... not equal to specified topology`."""
    stray: dict[str, Any] = {key: asked}
    found = mistakes(config(pool("v6e", "4x4", machine_type="ct6e-standard-4t", **stray)))
    assert list(found) == [f"pools[0].{key}"]
    problem = found[f"pools[0].{key}"]
    assert "4x4 is 4 hosts" in problem.reason
    assert (problem.allowed, problem.nearest) == ((), None)


@pytest.mark.parametrize("topology", ["2x8", "8x2", "4x2", "1x2", "4x4x1", "16"])
def test_only_topologies_of_gke_are_taken_also_where_ray_lists_more(topology: str) -> None:
    """google/sam#101: Ray lists 2x8, and no node of GKE is labelled so."""
    for generation in ("v5e", "v6e"):
        assert list(mistakes(config(pool(generation, topology)))) == ["pools[0].topology"]


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("v6", "v6e"),
        ("tpu7x", "v7x"),
        ("v5litepod", "v5e"),
        ("tpu-v5-lite-podslice", "v5e"),
        ("TPU-V6E", "v6e"),
        ("v5litepod-16", "v5e"),
        ("h100", None),
    ],
)
def test_another_name_of_a_generation_is_refused_with_the_known_ones(written: str, right: str | None) -> None:
    """ray#62786, ray#48201: an unknown accelerator has no head resource, and waits for ever."""
    found = mistakes(config(pool(written, "4x4")))
    assert list(found) == ["pools[0].generation"]
    problem = found["pools[0].generation"]
    assert problem.allowed == ("v4", "v5e", "v5p", "v6e", "v7x")
    assert problem.nearest == right
