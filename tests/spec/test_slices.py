"""The catalogue of slices: its arithmetic, its rows, and the nearest legal slice for a wrong one."""

from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from workloads.spec import Slice, SliceError, catalogue, resolve_slice, slice_mistakes
from workloads.spec.generations import GENERATIONS

ROWS = catalogue()
GENERATION_NAMES = ("v4", "v5e", "v5p", "v6e", "v7x")
A_ROW = st.sampled_from(ROWS)


def _mistake(generation: str, topology: str, machine_type: str | None = None) -> SliceError:
    (mistake,) = slice_mistakes(generation, topology, machine_type)
    return mistake


# GKE's tables of topologies, machines and hosts, row by row; see the sources in workloads/spec/generations.py.
KNOWN = [
    # generation, topology, machine type, chips, hosts, chips per host, GiB per chip, Ray's pod type, compiler's name
    ("v4", "2x2x1", "ct4p-hightpu-4t", 4, 1, 4, 32, "v4-8", "v4:2x2x1"),
    ("v4", "2x2x2", "ct4p-hightpu-4t", 8, 2, 4, 32, "v4-16", "v4:2x2x2"),
    ("v4", "12x16x16", "ct4p-hightpu-4t", 3072, 768, 4, 32, "v4-6144", "v4:12x16x16"),
    ("v5e", "1x1", "ct5lp-hightpu-1t", 1, 1, 1, 16, "v5litepod-1", "v5e:1x1"),
    ("v5e", "2x2", "ct5lp-hightpu-4t", 4, 1, 4, 16, "v5litepod-4", "v5e:2x2"),
    ("v5e", "2x4", "ct5lp-hightpu-8t", 8, 1, 8, 16, "v5litepod-8", "v5e:2x4"),
    ("v5e", "2x4", "ct5lp-hightpu-4t", 8, 2, 4, 16, "v5litepod-8", "v5e:2x4"),
    ("v5e", "4x4", "ct5lp-hightpu-4t", 16, 4, 4, 16, "v5litepod-16", "v5e:4x4"),
    ("v5p", "2x2x1", "ct5p-hightpu-4t", 4, 1, 4, 95, "v5p-8", "v5p:2x2x1"),
    ("v5p", "4x4x4", "ct5p-hightpu-4t", 64, 16, 4, 95, "v5p-128", "v5p:4x4x4"),
    ("v5p", "8x12x16", "ct5p-hightpu-4t", 1536, 384, 4, 95, "v5p-3072", "v5p:8x12x16"),
    ("v5p", "16x16x24", "ct5p-hightpu-4t", 6144, 1536, 4, 95, "v5p-12288", "v5p:16x16x24"),
    ("v6e", "1x1", "ct6e-standard-1t", 1, 1, 1, 32, "v6e-1", "v6e:1x1"),
    ("v6e", "2x4", "ct6e-standard-8t", 8, 1, 8, 32, "v6e-8", "v6e:2x4"),
    ("v6e", "2x4", "ct6e-standard-4t", 8, 2, 4, 32, "v6e-8", "v6e:2x4"),
    ("v6e", "4x4", "ct6e-standard-4t", 16, 4, 4, 32, "v6e-16", "v6e:4x4"),
    ("v6e", "16x16", "ct6e-standard-4t", 256, 64, 4, 32, "v6e-256", "v6e:16x16"),
    ("v7x", "1x1x1", "tpu7x-standard-1t", 1, 1, 1, 192, "v7x-2", "tpu7x:1x1x1"),
    ("v7x", "2x2x1", "tpu7x-standard-4t", 4, 1, 4, 192, "v7x-8", "tpu7x:2x2x1"),
    ("v7x", "4x4x4", "tpu7x-standard-4t", 64, 16, 4, 192, "v7x-128", "tpu7x:4x4x4"),
    ("v7x", "16x24x24", "tpu7x-standard-4t", 9216, 2304, 4, 192, "v7x-18432", "tpu7x:16x24x24"),
]


@pytest.mark.parametrize(
    ("generation", "topology", "machine", "chips", "hosts", "per_host", "hbm", "pod", "compiler"), KNOWN
)
def test_known_rows(
    generation: str,
    topology: str,
    machine: str,
    chips: int,
    hosts: int,
    per_host: int,
    hbm: int,
    pod: str,
    compiler: str,
) -> None:
    found = resolve_slice(generation, topology, machine)
    assert (found.chips, found.hosts, found.chips_per_host) == (chips, hosts, per_host)
    assert (found.hbm_gib_per_chip, found.ray_pod_type, found.compiler_topology) == (hbm, pod, compiler)
    assert found.multi_host == (hosts > 1)
    assert found in ROWS


def test_every_generation_and_its_names() -> None:
    assert tuple(GENERATIONS) == GENERATION_NAMES
    assert {name: table.gke_accelerator for name, table in GENERATIONS.items()} == {
        "v4": "tpu-v4-podslice",
        "v5e": "tpu-v5-lite-podslice",
        "v5p": "tpu-v5p-slice",
        "v6e": "tpu-v6e-slice",
        "v7x": "tpu7x",
    }


def test_flat_generations_have_exactly_gkes_topologies() -> None:
    for name in ("v5e", "v6e"):
        assert GENERATIONS[name].topologies() == ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")


def test_only_2x4_is_made_of_two_machine_types() -> None:
    shapes = [(row.generation, row.topology) for row in ROWS]
    twice = {shape for shape in shapes if shapes.count(shape) > 1}
    assert twice == {("v5e", "2x4"), ("v6e", "2x4")}
    assert len(ROWS) == len(set(ROWS))


def test_fewest_hosts_where_no_machine_is_named() -> None:
    for row in ROWS:
        chosen = resolve_slice(row.generation, row.topology)
        assert chosen.hosts <= row.hosts


@settings(deadline=None)
@given(A_ROW)
def test_arithmetic_of_every_row(row: Slice) -> None:
    assert row.chips == prod(row.dims)
    assert row.hosts * row.chips_per_host == row.chips
    assert row.multi_host == (row.hosts > 1)
    assert row.devices == row.hosts * row.devices_per_host
    assert row.devices in (row.chips, 2 * row.chips)
    assert prod(row.compiler_host_bounds) == row.chips_per_host
    assert Slice.model_validate_json(row.model_dump_json()) == row
    assert resolve_slice(row.generation, row.topology, row.machine_type) == row


def test_large_topologies_follow_the_rule_and_none_is_left_out() -> None:
    for name in ("v4", "v5p", "v7x"):
        table = GENERATIONS[name]
        listed = set(table.topologies())
        assert len(listed) == len(table.topologies())
        for topology in table.topologies():
            sides = [int(side) for side in topology.split("x")]
            if prod(sides) > 64:
                assert sides == sorted(sides)
                assert all(side % 4 == 0 for side in sides)
                assert prod(sides) <= table.max_chips
        wanted = {
            f"{a}x{b}x{c}"
            for a in range(4, 33, 4)
            for b in range(a, 97, 4)
            for c in range(b, 257, 4)
            if 64 < a * b * c <= table.max_chips
        }
        assert wanted == {topology for topology in listed if prod(map(int, topology.split("x"))) > 64}
        chips = [prod(map(int, topology.split("x"))) for topology in table.topologies()]
        assert all(left <= right for left, right in pairwise(chips))


@pytest.mark.parametrize(
    ("generation", "topology", "nearest"),
    [
        ("v6e", "4X4", "4x4"),
        ("v6e", "4x2", "2x4"),
        ("v6e", "2x8", "4x4"),
        ("v6e", "16", "4x4"),
        ("v6e", "4x4x1", "4x4"),
        ("v6e", "v6e-16", "4x4"),
        ("v6e", "16x8", "8x16"),
        ("v6e", "16x32", "16x16"),
        ("v6e", " 4x4", "4x4"),
        ("v6e", "4 x 4", "4x4"),
        ("v5e", "1x2", "1x1"),
        ("v4", "4x4x2", "2x4x4"),
        ("v4", "16x16x16", "12x16x16"),
        ("v5p", "4x4", "2x2x4"),
        ("v5p", "8x4x4", "4x4x8"),
        ("v5p", "v5p-8", "2x2x1"),
        ("v5p", "1x2x2", "2x2x1"),
        ("v5p", "16x24x16", "16x16x24"),
        ("v7x", "16x16x40", "16x16x36"),
        ("v7x", "1x1", "1x1x1"),
        ("v6e", "big", None),
        ("v6e", "", None),
        ("v6e", "0x4", None),
    ],
)
def test_nearest_topology(generation: str, topology: str, nearest: str | None) -> None:
    mistake = _mistake(generation, topology)
    assert (mistake.key, mistake.value, mistake.nearest) == ("topology", topology, nearest)


@pytest.mark.parametrize(
    ("generation", "nearest"),
    [
        ("tpu7x", "v7x"),
        ("ironwood", "v7x"),
        ("v7", "v7x"),
        ("v5litepod", "v5e"),
        ("tpu-v5-lite-podslice", "v5e"),
        ("v5lite", "v5e"),
        ("trillium", "v6e"),
        ("v6", "v6e"),
        ("V6E", "v6e"),
        ("TPU-V6E", "v6e"),
        ("v5p-8", "v5p"),
        ("v5litepod-16", "v5e"),
        ("ct5p-hightpu-4t", "v5p"),
        ("h100", None),
    ],
)
def test_nearest_generation(generation: str, nearest: str | None) -> None:
    mistake = slice_mistakes(generation, "4x4")[0]
    assert (mistake.key, mistake.allowed, mistake.nearest) == ("generation", GENERATION_NAMES, nearest)


def test_a_suffix_is_explained() -> None:
    reason = _mistake("v5p-8", "2x2x1").reason
    assert "counts cores on v4, v5p and v7x and chips on v5e and v6e" in reason
    assert reason.endswith("v5p-8 is generation v5p with topology 2x2x1")
    assert _mistake("v6e-8", "2x4").reason.endswith("v6e-8 is generation v6e with topology 2x4")
    assert "topology" not in _mistake("v5p-7", "2x2x1").reason.partition("; ")[2]


@pytest.mark.parametrize(
    ("generation", "topology", "machine", "allowed"),
    [
        ("v6e", "2x2", "ct6e-standard-8t", ("ct6e-standard-4t",)),
        ("v6e", "4x4", "ct6e-standard-8t", ("ct6e-standard-4t",)),
        ("v6e", "2x4", "ct6e-standard-1t", ("ct6e-standard-8t", "ct6e-standard-4t")),
        ("v5e", "2x4", "ct5l-hightpu-8t", ("ct5lp-hightpu-8t", "ct5lp-hightpu-4t")),
        ("v7x", "1x1x1", "tpu7x-standard-4t", ("tpu7x-standard-1t",)),
    ],
)
def test_wrong_machine(generation: str, topology: str, machine: str, allowed: tuple[str, ...]) -> None:
    mistake = _mistake(generation, topology, machine)
    assert (mistake.key, mistake.value, mistake.allowed) == ("machine_type", machine, allowed)
    assert mistake.nearest in allowed


def test_an_unknown_generation_does_not_hide_an_impossible_topology() -> None:
    assert [mistake.key for mistake in slice_mistakes("v6", "4x5")] == ["generation", "topology"]
    assert [mistake.key for mistake in slice_mistakes("v6", "4x4")] == ["generation"]


def test_a_slice_cannot_be_made_wrong() -> None:
    with pytest.raises(SliceError, match="v5p slice"):
        resolve_slice("v5p", "4x4")
    with pytest.raises(ValidationError, match="not made of this machine"):
        Slice(generation="v6e", topology="4x4", machine_type="ct6e-standard-8t")
    with pytest.raises(ValidationError, match="Extra inputs"):
        Slice.model_validate({"generation": "v6e", "topology": "4x4", "machine_type": "ct6e-standard-4t", "hosts": 2})


@settings(deadline=None)
@given(st.sampled_from(GENERATION_NAMES), st.text(max_size=12) | st.from_regex(r"\A-?\d{1,9}([xX ]\d{1,9}){0,3}\Z"))
def test_any_text_as_topology_is_a_slice_or_explained(generation: str, topology: str) -> None:
    mistakes = slice_mistakes(generation, topology)
    if topology in GENERATIONS[generation].topologies():
        assert mistakes == ()
    else:
        assert [mistake.key for mistake in mistakes] == ["topology"]
        assert mistakes[0].nearest is None or mistakes[0].nearest in GENERATIONS[generation].topologies()


@settings(deadline=None)
@given(st.text(max_size=12) | st.from_regex(r"\A(tpu-?)?v\d[a-z]{0,4}-\d{1,30}\Z"), st.text(max_size=5))
def test_any_text_as_generation_is_explained(generation: str, topology: str) -> None:
    mistakes = slice_mistakes(generation, topology)
    if generation not in GENERATIONS:
        assert mistakes[0].key == "generation"
        assert mistakes[0].nearest is None or mistakes[0].nearest in GENERATIONS
