"""ServiceSpec, JobSpec and the launches: defaults that follow from each other, and JSON there and back."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from workloads.spec import EngineSpec, JobLaunch, JobSpec, ServiceLaunch, ServiceSpec, resolve_slice


@pytest.mark.parametrize(
    ("context", "buckets"),
    [(1024, (64, 256, 1024)), (512, (64, 256, 512)), (64, (64,)), (16, (16,)), (5000, (64, 256, 1024))],
)
def test_absent_buckets_follow_the_context(context: int, buckets: tuple[int, ...]) -> None:
    spec = EngineSpec(context=context)
    assert spec.prefill_buckets == buckets
    assert EngineSpec.model_validate_json(spec.model_dump_json(), strict=True) == spec


def test_written_buckets_stay() -> None:
    assert EngineSpec(context=512, prefill_buckets=(100, 512)).prefill_buckets == (100, 512)
    assert EngineSpec.model_validate_json('{"prefill_buckets": [8, 1024]}', strict=True).prefill_buckets == (8, 1024)
    assert EngineSpec().prefill_buckets == (64, 256, 1024)


@pytest.mark.parametrize("buckets", [[], [0], ["64"], None, 64, [1.5]])
def test_wrong_buckets(buckets: object) -> None:
    with pytest.raises(ValidationError):
        EngineSpec.model_validate({"context": 512, "prefill_buckets": buckets}, strict=True)


@pytest.mark.parametrize("name", ["", "A", "3b", "a_b", "a-", "-a", "a.b", "a\n", "a" * 48])
def test_names_that_are_no_dns_labels(name: str) -> None:
    with pytest.raises(ValidationError):
        ServiceSpec(name=name, pool="p", model="m")


def test_launches_are_one_json_value_each() -> None:
    found = resolve_slice("v6e", "4x4")
    service = ServiceLaunch(
        service=ServiceSpec(name="chat", pool="quad", model="job:story"),
        slice=found,
        model="/models/story",
        model_name="story",
        model_version="200",
    )
    assert ServiceLaunch.model_validate_json(service.model_dump_json()) == service
    job = JobLaunch(job=JobSpec(name="story", pool="quad", run="r7"), slice=found, storage="/data")
    assert JobLaunch.model_validate_json(job.model_dump_json()) == job
    assert job.run_name == "story-r7"
    assert job.export_dir == "/data/story-r7/export"


def test_the_spec_brings_in_no_heavy_library() -> None:
    code = "import sys, workloads.spec; print(sorted({'ray', 'jax', 'pulumi', 'numpy', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
