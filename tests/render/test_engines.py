"""The manifests of services with engines of others: all of Serve's config, valid for Ray's and KubeRay's own schemas.

Ray Serve LLM cannot be imported as a whole without vLLM; its LLMConfig, its accelerators and Serve's schema can.
"""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from ray.util.tpu import get_tpu_worker_resources

from infra.plan.llm import llm_config
from infra.plan.mark import mark_of
from infra.platforms.gke.manifests import ray_service
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.render.kuberay import VERSIONS, schema
from tests.render.rays_own import LLMConfig, ServeDeploySchema, TPUAccelerator, TPUConfig
from tests.render.stacks import config
from workloads.declared import declared_slices
from workloads.spec import ServiceLaunch, ServiceSpec, Slice, VllmSpec, catalogue

LLAMA = "hf:meta-llama/Llama-3.1-8B-Instruct"
VLLM: dict[str, Any] = {
    "name": "chat",
    "pool": "pool",
    "model": LLAMA,
    "engine": {"kind": "vllm", "context": 8192, "kwargs": {"max_num_seqs": 64}},
}
APP: dict[str, Any] = {
    "name": "mine",
    "pool": "pool",
    "engine": {"kind": "app", "import_path": "my_app.main:build", "args": {"greeting": "hello", "sizes": [1, 2]}},
}


def stack_of(service: dict[str, Any], topology: str = "4x4", slices: int = 1, **changes: object) -> StackSpec:
    pools = [{"name": "pool", "generation": "v6e", "topology": topology, "slices": slices}]
    return parse_stack(config(**{"pools": pools, "services": [service], "jobs": [], **changes}))


def manifest(service: dict[str, Any], **changes: Any) -> dict[str, Any]:
    stack = stack_of(service, **changes)
    assert isinstance(stack.platform, GkePlatform)
    return dict(ray_service(stack.platform, stack, stack.services[0]))


def served(made: dict[str, Any]) -> list[dict[str, Any]]:
    applications: list[dict[str, Any]] = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"]
    return applications


def vllm_config(**changes: Any) -> dict[str, Any]:
    (found,) = served(manifest(VLLM, **changes))[0]["args"]["llm_configs"]
    return dict(found)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("service", [VLLM, APP], ids=["vllm", "app"])
def test_manifests_are_valid_for_kuberay_and_serve(service: dict[str, Any], version: str) -> None:
    made = manifest(service)
    jsonschema.Draft202012Validator(schema(version, "RayService")).validate(made)
    ServeDeploySchema.model_validate({"applications": served(made)})


def test_vllm_is_ray_serve_llm_with_the_slice_of_the_pool() -> None:
    application, mark = served(manifest(VLLM))
    assert application == {
        "name": "chat",
        "route_prefix": "/chat",
        "import_path": "ray.serve.llm:build_openai_app",
        "args": {
            "llm_configs": [
                {
                    "model_loading_config": {
                        "model_id": "Llama-3.1-8B-Instruct",
                        "model_source": "meta-llama/Llama-3.1-8B-Instruct",
                    },
                    "accelerator_type": "TPU-V6E",
                    "accelerator_config": {"kind": "tpu", "topology": "4x4"},
                    "engine_kwargs": {"max_num_seqs": 64, "tensor_parallel_size": 16, "max_model_len": 8192},
                    "deployment_config": {"num_replicas": 1, "max_constructor_retry_count": 3},
                }
            ]
        },
    }
    assert mark == {
        "name": "chat-mark",
        "route_prefix": None,
        "import_path": "workloads.serve.mark:build",
        "args": {"mark": mark_of(application)},
    }


def test_the_bare_word_is_vllm_with_the_models_own_context() -> None:
    service = {**VLLM, "engine": "vllm"}
    (found,) = served(manifest(service, topology="2x2"))[0]["args"]["llm_configs"]
    assert found["engine_kwargs"] == {"tensor_parallel_size": 4}


def test_vllm_serves_what_a_job_has_exported_with_the_jobs_context() -> None:
    service = {**VLLM, "model": "job:train", "engine": "vllm"}
    job = {"name": "train", "pool": "pool", "run": "r7"}
    (found,) = served(manifest(service, jobs=[job]))[0]["args"]["llm_configs"]
    assert found["model_loading_config"] == {"model_id": "train", "model_source": "gs://my-bucket/runs/train-r7/export"}
    assert found["engine_kwargs"]["max_model_len"] == 128


def test_the_stages_of_a_pipeline_share_the_devices() -> None:
    service = {**VLLM, "engine": {"kind": "vllm", "kwargs": {"pipeline_parallel_size": 4}}}
    (found,) = served(manifest(service))[0]["args"]["llm_configs"]
    assert found["engine_kwargs"] == {"pipeline_parallel_size": 4, "tensor_parallel_size": 4}


def test_another_slice_is_another_config() -> None:
    assert vllm_config(topology="2x4")["accelerator_config"] == {"kind": "tpu", "topology": "2x4"}
    assert vllm_config(topology="2x4")["engine_kwargs"]["tensor_parallel_size"] == 8


def test_replicas_wait_for_their_slices_as_long_as_asked() -> None:
    """Ray tries a constructor min(3 per replica, max_constructor_retry_count) times; one try waits 100 s."""
    made = manifest({**VLLM, "replicas": 2, "reserve_timeout_s": 1200}, slices=2)
    (found,) = served(made)[0]["args"]["llm_configs"]
    assert found["deployment_config"] == {"num_replicas": 2, "max_constructor_retry_count": 24}
    head = made["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert {"name": "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT", "value": "12"} in head["env"]
    assert "RAY_SERVE" not in json.dumps(manifest(VLLM))


def test_ray_serve_llm_finds_no_token_that_it_could_copy() -> None:
    """It copies HF_TOKEN from the environment of a replica into the runtime_env of vLLM's workers."""
    cluster = manifest(VLLM)["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        environment = {entry["name"]: entry["value"] for entry in container["env"]}
        assert not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} & set(environment)
        (mount,) = container["volumeMounts"]
        assert environment["HF_TOKEN_PATH"] == f"{mount['mountPath']}/token"
        (volume,) = pod["volumes"]
        assert volume == {"name": mount["name"], "secret": {"secretName": "tpu-ray-hub", "optional": True}}


def shapes() -> list[Slice]:
    return [shape for shape in catalogue() if shape.ray_accepts and shape.fewest_hosts]


def test_every_slice_that_is_let_through_is_what_ray_reserves() -> None:
    """LLMConfig takes it, and the group that Ray then makes is every host of the slice with all its chips."""
    refused = [shape for shape in catalogue() if shape.ray_accepts and not shape.fewest_hosts]
    assert {(shape.topology, shape.hosts) for shape in refused} == {("2x4", 2)}
    for shape in shapes():
        service = ServiceSpec(name="chat", pool="p", model=LLAMA, engine=VllmSpec())
        launch = ServiceLaunch(service=service, slice=shape, model=LLAMA, model_name="m")
        made = LLMConfig.model_validate(llm_config(launch, VllmSpec()))
        assert isinstance(made.accelerator_config, TPUConfig)
        topology, kind = made.accelerator_config.topology, made.accelerator_type
        assert (topology, kind) == (shape.topology, shape.ray_accelerator_type)
        assert topology
        assert kind
        bundles = TPUAccelerator(made.accelerator_config).default_bundles(
            num_devices=made.engine_kwargs["tensor_parallel_size"], accelerator_type_str=kind
        )
        # Only the first one's size counts (TPUAccelerator.create_placement_group).
        hosts, resources = get_tpu_worker_resources(topology, kind, resources_per_worker=bundles[0])
        assert (hosts, resources["TPU"]) == (shape.hosts, shape.chips_per_host), shape


def test_an_application_is_imported_as_it_is_written() -> None:
    application, mark = served(manifest(APP))
    environment = application.pop("runtime_env")
    assert application == {
        "name": "mine",
        "route_prefix": "/mine",
        "import_path": "my_app.main:build",
        "args": {"greeting": "hello", "sizes": [1, 2]},
    }
    assert set(environment) == {"env_vars"}
    assert set(environment["env_vars"]) == {"TPU_RAY_SLICES"}
    assert mark["runtime_env"] == environment


def test_an_application_reads_its_slices_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="TPU_RAY_SLICES is not set"):
        declared_slices()
    made = served(manifest({**APP, "replicas": 2}, slices=2))[0]
    monkeypatch.setenv("TPU_RAY_SLICES", made["runtime_env"]["env_vars"]["TPU_RAY_SLICES"])
    found = declared_slices()
    assert (found.pool, found.replicas, found.slice.topology, found.slice.hosts) == ("pool", 2, "4x4", 4)


def test_what_is_served_changes_the_mark_and_what_is_waited_for_does_not() -> None:
    def mark(service: dict[str, Any]) -> str:
        return str(served(manifest(service))[1]["args"]["mark"])

    assert mark({**APP, "ready_timeout_s": 60}) == mark(APP)
    assert mark({**APP, "engine": {**APP["engine"], "health": "/healthz"}}) == mark(APP)
    assert mark({**APP, "engine": {**APP["engine"], "args": {"greeting": "hi"}}}) != mark(APP)
    assert mark({**VLLM, "engine": "vllm"}) != mark(VLLM)
