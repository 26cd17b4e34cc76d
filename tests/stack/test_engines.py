"""How an engine may be written, and that nothing odd passes for one. What is refused in which words: `broken/`."""

import json
from typing import Any

import pytest

from infra.stack import StackError, parse_stack
from tests.render.stacks import config
from workloads.spec import AppSpec, EngineSpec, ServiceLaunch, ServiceSpec, VllmSpec, resolve_slice

LLAMA = "hf:meta-llama/Llama-3.1-8B-Instruct"
APP = {"kind": "app", "import_path": "my_app.main:build", "args": {"a": [1, {"b": None}]}}


def service(**keys: object) -> ServiceSpec:
    pools = [{"name": "small", "generation": "v6e", "topology": "2x2"}]
    jobs = [{"name": "train", "pool": "small"}]
    return parse_stack(
        config(pools=pools, jobs=jobs if keys.get("model") == "job:train" else [], services=[entry(**keys)])
    ).services[0]


def entry(**keys: object) -> dict[str, object]:
    return {"name": "chat", "pool": "small", **keys}


@pytest.mark.parametrize("engine", ["jax", {}, {"kind": "jax"}])
def test_the_bundled_engine_by_word_by_kind_and_by_nothing(engine: object) -> None:
    assert service(model="/models/a", engine=engine).engine == service(model="/models/a").engine == EngineSpec()


def test_a_stack_file_of_before_is_the_bundled_engine() -> None:
    written = {"max_slots": 2, "context": 512, "prefill_buckets": [64, 512]}
    assert service(model="/models/a", engine=written).engine == EngineSpec(
        max_slots=2, context=512, prefill_buckets=(64, 512)
    )


def test_vllm_by_word_and_in_full() -> None:
    assert service(model=LLAMA, engine="vllm").engine == VllmSpec()
    written = {"kind": "vllm", "context": 8192, "kwargs": {"dtype": "bfloat16", "max_num_seqs": 64}}
    assert service(model=LLAMA, engine=written).engine == VllmSpec(context=8192, kwargs=written["kwargs"])  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["vllm", {"kind": "vllm"}])
def test_vllm_has_the_context_of_the_job_whose_model_it_serves(engine: object) -> None:
    assert service(model="job:train", engine=engine).engine == VllmSpec(context=128)


def test_an_application_has_no_model_and_keeps_its_arguments_as_they_are() -> None:
    made = service(engine=APP)
    assert made.model == ""
    assert made.engine == AppSpec(import_path="my_app.main:build", args={"a": [1, {"b": None}]})
    assert made.engine.health is None


@pytest.mark.parametrize("engine", ["jax", "vllm", APP], ids=["jax", "vllm", "app"])
def test_a_launch_is_the_same_after_a_way_through_json(engine: Any) -> None:
    made = service(engine=engine, **({} if engine is APP else {"model": "/models/a"}))
    launch = ServiceLaunch(service=made, slice=resolve_slice("v6e", "2x2"), model=made.model, model_name="m")
    assert ServiceLaunch.model_validate_json(launch.model_dump_json()) == launch
    assert ServiceLaunch.model_validate(launch.model_dump(mode="json")) == launch
    if engine == "jax":
        assert launch.engine == EngineSpec()
    else:
        with pytest.raises(TypeError, match="not the bundled one"):
            _ = launch.engine


@pytest.mark.parametrize(
    "engine",
    [
        True,
        None,
        3,
        "",
        [],
        ["vllm"],
        {"kind": None},
        {"kind": ["vllm"]},
        {"kind": {"kind": "vllm"}},
        {"secure": "v1:x:y"},
        {"kind": "vllm", "kwargs": []},
        {"kind": "vllm", "kwargs": {"pipeline_parallel_size": True}},
        {"kind": "vllm", "kwargs": {"pipeline_parallel_size": 0}},
        {"kind": "vllm", "kwargs": {"x": {"secure": "v1:x:y"}}},
        {"kind": "app", "import_path": 3},
        {"kind": "app", "import_path": "a:b\n"},
        {"kind": "app", "import_path": "a:b", "health": "/a?b"},
    ],
)
def test_nothing_odd_passes_for_an_engine(engine: object) -> None:
    for keys in ({"model": LLAMA}, {}):
        with pytest.raises(StackError) as caught:
            service(engine=engine, **keys)
        told = [problem.model_dump(mode="json") for problem in caught.value.problems]
        assert any(problem["key"].startswith("tpu-ray:services[0].engine") for problem in told), told
        assert "v1:x:y" not in json.dumps(told)
