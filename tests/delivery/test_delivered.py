"""Where pods have their code from: in the manifests and among what `up` makes."""

import copy
import json
import re
import warnings
from typing import Any

import jsonschema
import pytest
import yaml

from infra.plan.code import SERVE_ENTRY, TRAIN_ENTRY, archive_of
from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import declared
from tests.render.kuberay import VERSIONS, schema
from tests.render.stacks import GKE, config


def rendered(**platform: object) -> dict[str, Any]:
    stack = parse_stack(config(platform={**GKE, **platform}))
    assert isinstance(stack.platform, GkePlatform)
    return dict(manifests(stack.platform, stack))


def runtime_envs(files: dict[str, Any]) -> dict[str, Any]:
    """What Ray is told beside the entry, by the manifest's file."""
    found: dict[str, Any] = {}
    for name, manifest in files.items():
        spec = manifest["spec"]
        if manifest["kind"] == "RayJob":
            found[name] = yaml.safe_load(spec.get("runtimeEnvYAML", "{}"))
        else:
            (application,) = yaml.safe_load(spec["serveConfigV2"])["applications"]
            found[name] = application.get("runtime_env", {})
    return found


def test_an_image_is_all_that_a_pod_starts_with() -> None:
    assert set(map(str, runtime_envs(rendered()).values())) == {"{}"}


def test_an_archive_is_read_from_the_mounted_bucket_and_nothing_is_installed() -> None:
    serve, train = archive_of(SERVE_ENTRY).name, archive_of(TRAIN_ENTRY).name
    assert runtime_envs(rendered(code="archive")) == {
        "rayservice-chat.yaml": {"working_dir": f"file:///mnt/my-bucket/runs/code/{serve}"},
        "rayservice-trained.yaml": {"working_dir": f"file:///mnt/my-bucket/runs/code/{serve}"},
        "rayjob-train.yaml": {"working_dir": f"file:///mnt/my-bucket/runs/code/{train}"},
    }
    for code in ("archive", "image"):
        assert not re.search(r"pip|conda|\buv\b|py_executable", json.dumps(rendered(code=code)))


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_with_archives_are_valid_for_kuberay(version: str) -> None:
    for manifest in rendered(code="archive").values():
        jsonschema.Draft202012Validator(schema(version, manifest["kind"])).validate(manifest)


def test_serve_takes_the_application_as_it_is_written() -> None:
    """Serve takes an address for the code, no folder: ray-project/kuberay#510."""
    with warnings.catch_warnings():
        # Ray's own fields are written in pydantic's older way.
        warnings.simplefilter("ignore", DeprecationWarning)
        from ray.serve.schema import ServeDeploySchema

    for name, manifest in rendered(code="archive").items():
        if name.startswith("rayservice"):
            ServeDeploySchema.model_validate(yaml.safe_load(manifest["spec"]["serveConfigV2"]))


def test_other_code_is_another_answer_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old replica answers until Serve has replaced it; who waits for the new code must not take it for that."""
    image, archive = (
        (yaml.safe_load(rendered(code=code)["rayservice-chat.yaml"]["spec"]["serveConfigV2"]))
        for code in ("image", "archive")
    )
    (old,), (new,) = image["applications"], archive["applications"]
    assert old["args"]["code"] == ""
    assert archive_of(SERVE_ENTRY).name.startswith(new["args"]["code"])


def test_each_archive_is_put_into_the_bucket_once_before_the_pods_and_stays_there() -> None:
    made = [one for one in declared(config(platform={**GKE, "code": "archive"})) if one.type.endswith("BucketObject")]
    names = {archive_of(entry).name for entry in (SERVE_ENTRY, TRAIN_ENTRY)}
    assert {one.inputs["name"] for one in made} == {f"runs/code/{name}" for name in names}
    assert {one.inputs["bucket"] for one in made} == {"my-bucket"}
    # Whoever was started with it fetches it again; and a protected one could not be let go.
    assert all(one.retain_on_delete and not one.protect for one in made)
    assert not [one for one in declared(config()) if one.type.endswith("BucketObject")]


def test_a_planted_token_is_in_no_archive_and_no_command() -> None:
    token = "hf_EXAMPLEPLANTED"
    made = declared(config(platform={**GKE, "code": "archive"}), {"tpu-ray:hubToken": token})
    assert token not in repr(copy.deepcopy(made))
    assert all(token.encode() not in archive_of(entry).zipped() for entry in (SERVE_ENTRY, TRAIN_ENTRY))
    assert token not in json.dumps(rendered(code="archive"))
