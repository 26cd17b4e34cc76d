"""Values that stand close to what is refused, and are right. What is refused in which words: `broken/`."""

import re
from typing import Any
from zoneinfo import available_timezones

import pytest

from infra.plan.launches import service_launch
from infra.plan.llm import llm_config
from infra.stack import GkePlatform, parse_stack
from tests.render.stacks import GKE, config
from workloads.spec import VllmSpec
from workloads.spec.job import ZONE_PATTERN

KEY = {"secret": "my-keys.v1", "key": ".a..b"}


def job(**keys: object) -> Any:
    """A stack whose one job also has these keys."""
    return parse_stack(config(jobs=[{"name": "train", "pool": "big", **keys}])).jobs[0]


def service(**keys: object) -> Any:
    return parse_stack(config(services=[{"name": "chat", "pool": "small", **keys}])).services[0]


@pytest.mark.parametrize("name", ["JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "RAY_SERVE_KV_TIMEOUT_S", "RAY_IPV6", "TZ"])
def test_variables_of_a_job(name: str) -> None:
    assert job(env={name: "1"}).env == {name: "1"}


def test_a_password_of_redis_is_a_runs_own_and_without_fault_tolerance_a_services_own() -> None:
    assert job(secret_env={"REDIS_PASSWORD": KEY}).secret_env["REDIS_PASSWORD"].key == ".a..b"
    assert service(model="/models/a", secret_env={"REDIS_PASSWORD": KEY}).secret_env


def test_every_time_zone_of_iana() -> None:
    for zone in ("EST5EDT", "GMT+0", "NZ-CHAT", "GB-Eire", "W-SU", *(available_timezones() - {"localtime"})):
        assert re.fullmatch(ZONE_PATTERN, zone), zone
    assert job_of_a_schedule("@daily", time_zone="GMT+0").time_zone == "GMT+0"


@pytest.mark.parametrize(
    "schedule",
    ["0 0 29 2 *", "0 0 31 2 1", "0 0 31 1,2 *", "0 0 31 */2 *", "0 0 */9 2 *", "0 0 28-31 2 *", "0 0 31 2 */2"],
)
def test_a_schedule_that_comes(schedule: str) -> None:
    assert job_of_a_schedule(schedule).schedule == schedule


def job_of_a_schedule(schedule: str, **keys: object) -> Any:
    jobs = [{"name": "train", "pool": "big", "schedule": schedule, **keys}]
    return parse_stack(config(jobs=jobs, services=[{"name": "chat", "pool": "small", "model": "/models/a"}])).jobs[0]


@pytest.mark.parametrize("model", ["hf:org/m", "hf:org/m@v1.0", "hf:org/m@refs/pr/3", "/models/a", "gs://my-bucket/m"])
def test_models_of_vllm(model: str) -> None:
    assert service(model=model, engine="vllm").model == model


def test_a_stage_of_the_pipeline_is_a_host() -> None:
    engine = {"kind": "vllm", "kwargs": {"pipeline_parallel_size": 4}}
    services = [{"name": "chat", "pool": "big", "model": "hf:org/m", "engine": engine}]
    jobs = [{"name": "train", "pool": "small"}]
    stack = parse_stack(config(services=services, jobs=jobs))
    launch = service_launch(stack, stack.services[0], "/mnt")
    assert isinstance(stack.services[0].engine, VllmSpec)
    assert llm_config(launch, stack.services[0].engine)["engine_kwargs"] == {
        "pipeline_parallel_size": 4,
        "tensor_parallel_size": 4,
    }


@pytest.mark.parametrize("storage", ["gs://b-1/", "gs://b-1/runs/", "gs://b-1/.a/..b/...", "gs://b-1/a b/ü"])
def test_storage(storage: str) -> None:
    platform = parse_stack(config(platform={**GKE, "storage": storage})).platform
    assert isinstance(platform, GkePlatform)
    assert platform.storage == storage


@pytest.mark.parametrize("address", ["r:1", "redis://r.ml.svc:65535", "rediss://r:6379"])
def test_redis(address: str) -> None:
    ray = {"gcs_fault_tolerance": {"redis_address": address, "password_secret": "a.b-c", "password_key": ".a"}}
    assert parse_stack(config(platform={**GKE, "ray": ray}))


def test_a_run_keeps_its_slice_no_longer_than_a_service_waits_for_it() -> None:
    assert job(keep_cluster_s=300).keep_cluster_s == 300
    services = [{"name": "trained", "pool": "big", "model": "job:train", "paused": True}]
    jobs = [{"name": "train", "pool": "big", "keep_cluster_s": 3600}, {"name": "other", "pool": "small"}]
    assert parse_stack(config(services=services, jobs=jobs))
    waits = {"reserve_timeout_s": 3600, "ready_timeout_s": 4000}
    assert parse_stack(config(services=[{**services[0], "paused": False, **waits}], jobs=jobs))
