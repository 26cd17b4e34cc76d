"""What GKE demands of a TPU node pool, generation by generation and mode by mode.

Expected values: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus, .../how-to/tpus,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws, and the preconditions of
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.plan.node_pools import Fixed, NodePool, Scaled, cpu_machine, node_pools
from infra.stack import GkePlatform, PoolSpec, parse_pool
from tests.render.stacks import GKE
from workloads.spec import Slice, catalogue

ZONE = "us-east5-b"

SINGLE = {
    "v4": ("2x2x1", "ct4p-hightpu-4t"),
    "v5e": ("2x2", "ct5lp-hightpu-4t"),
    "v5p": ("2x2x1", "ct5p-hightpu-4t"),
    "v6e": ("2x4", "ct6e-standard-8t"),
    "v7x": ("2x2x1", "tpu7x-standard-4t"),
}
MULTI = {
    "v4": ("2x2x2", "ct4p-hightpu-4t", 2),
    "v5e": ("4x4", "ct5lp-hightpu-4t", 4),
    "v5p": ("2x2x4", "ct5p-hightpu-4t", 4),
    "v6e": ("16x16", "ct6e-standard-4t", 64),
    "v7x": ("4x4x4", "tpu7x-standard-4t", 16),
}
DISKS = {"v4": "pd-balanced", "v5e": "pd-balanced", "v5p": "pd-balanced"}
CAPACITIES = ("on-demand", "spot", "reservation", "flex-start", "queued")
LENT = ("flex-start", "queued")


def pool(generation: str, topology: str, capacity: str = "on-demand", least: int = 0, most: int = 2) -> PoolSpec:
    raw: dict[str, object] = {"name": "p", "generation": generation, "topology": topology, "capacity": capacity}
    raw["slices"] = {"min": least, "max": most}
    if capacity == "reservation":
        raw["reservation"] = "held"
    return parse_pool(raw, "p")


LEGAL = [(g, c) for g, c in product(SINGLE, CAPACITIES) if not (g == "v4" and c in LENT)]


@pytest.mark.parametrize(("generation", "capacity"), LEGAL)
def test_slices_of_one_host_are_the_nodes_of_one_pool(generation: str, capacity: str) -> None:
    topology, machine = SINGLE[generation]
    (made,) = node_pools(pool(generation, topology, capacity), ZONE)
    assert made.name == "p-0"
    assert made.machine_type == machine
    assert made.size == Scaled(0, 2)
    # GKE: "TPU topology can't be specified with single-host TPU slice pool".
    assert (made.topology, made.compact, made.workload_policy) == (None, False, False)
    assert_mode(made, capacity)
    assert made.disk_type == DISKS.get(generation, "hyperdisk-balanced")


@pytest.mark.parametrize(("generation", "capacity"), LEGAL)
def test_each_slice_of_several_hosts_is_a_pool_of_its_own(generation: str, capacity: str) -> None:
    topology, machine, hosts = MULTI[generation]
    made = node_pools(pool(generation, topology, capacity), ZONE)
    assert [one.name for one in made] == ["p-0", "p-1"]
    for one in made:
        assert one.machine_type == machine
        assert one.size == Scaled(0, hosts)
        assert one.topology == topology
        # v7x: "... machine type with placement policy is not supported. Use workload policy instead."
        assert (one.compact, one.workload_policy) == ((False, True) if generation == "v7x" else (True, False))
        assert one.zone == ZONE
        assert_mode(one, capacity)


def assert_mode(made: NodePool, capacity: str) -> None:
    assert made.spot == (capacity == "spot")
    assert made.flex_start == (capacity == "flex-start")
    assert made.queued == (capacity == "queued")
    assert made.reservation == ("held" if capacity == "reservation" else None)
    # Flex-start and queued: no repair, a week at most, and no node before it is asked for.
    assert made.auto_repair == (capacity not in LENT)
    assert made.max_run_s == (604800 if capacity in LENT else None)


def test_kept_slices_have_a_size_and_the_others_a_limit() -> None:
    assert [one.size for one in node_pools(pool("v6e", "4x4", least=1, most=3), ZONE)] == [
        Fixed(4),
        Scaled(0, 4),
        Scaled(0, 4),
    ]
    (single,) = node_pools(pool("v6e", "2x2", least=2, most=2), ZONE)
    assert single.size == Fixed(2)
    (single,) = node_pools(pool("v6e", "2x2", least=1, most=3), ZONE)
    assert single.size == Scaled(1, 3)


def test_the_same_topology_on_two_machines() -> None:
    small = parse_pool({"name": "p", "generation": "v5e", "topology": "2x4", "machine_type": "ct5lp-hightpu-4t"}, "p")
    (two_hosts,) = node_pools(small, ZONE)
    assert (two_hosts.name, two_hosts.size, two_hosts.topology) == ("p-0", Fixed(2), "2x4")
    (one_host,) = node_pools(parse_pool({"name": "p", "generation": "v5e", "topology": "2x4"}, "p"), ZONE)
    assert (one_host.name, one_host.size, one_host.topology) == ("p-0", Fixed(1), None)


def test_a_pool_may_lie_in_another_zone() -> None:
    other = parse_pool({"name": "p", "generation": "v6e", "topology": "2x2", "zone": "us-east5-a"}, "p")
    assert node_pools(other, ZONE)[0].zone == "us-east5-a"


def test_a_region_without_e2_machines_has_others() -> None:
    assert cpu_machine(GkePlatform.model_validate(GKE)) == "e2-standard-8"
    v4 = GkePlatform.model_validate({**GKE, "region": "us-central2", "zone": "us-central2-b"})
    assert cpu_machine(v4) == "n2d-standard-8"
    own = {**GKE, "cluster": {"cpu_nodes": {"machine_type": "n2-standard-16"}}}
    assert cpu_machine(GkePlatform.model_validate(own)) == "n2-standard-16"


SHAPES = [shape for shape in catalogue() if shape.ray_accepts]


@given(st.sampled_from(SHAPES), st.integers(0, 3), st.integers(1, 3))
def test_nodes_are_hosts_times_slices(shape: Slice, least: int, more: int) -> None:
    most = least + more
    spec = PoolSpec.model_validate(
        {
            "name": "p",
            "generation": shape.generation,
            "topology": shape.topology,
            "machine_type": shape.machine_type,
            "slices": {"min": least, "max": most},
        }
    )
    made = node_pools(spec, ZONE)
    assert sum(one.max_nodes for one in made) == shape.hosts * most
    assert len({one.name for one in made}) == len(made)
    kept = sum(one.size.nodes if isinstance(one.size, Fixed) else one.size.least for one in made)
    assert kept == shape.hosts * least
    assert all(one.create_timeout_s <= 4 * 3600 for one in made)
