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

SMALL = [{"name": "small", "generation": "v6e", "topology": "2x2"}]


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


OTHERS: dict[str, dict[str, Any]] = {
    "app": {"engine": {"kind": "app", "import_path": "my_app:build"}},
    "vllm": {"engine": "vllm", "model": "hf:acme/small"},
}


@pytest.mark.parametrize("engine", sorted(OTHERS))
def test_other_engines_find_all_their_code_in_the_image(engine: str) -> None:
    """An archive of a part of `workloads` before it would hide the rest: their mark, and what they import."""
    services = [{"name": "chat", "pool": "small", **OTHERS[engine]}]
    wanted = config(platform={**GKE, "code": "archive"}, services=services, jobs=[], pools=SMALL)
    stack = parse_stack(wanted)
    assert isinstance(stack.platform, GkePlatform)
    manifest: Any = manifests(stack.platform, stack)["rayservice-chat.yaml"]
    assert "working_dir" not in manifest["spec"]["serveConfigV2"]
    assert not [one for one in declared(wanted) if one.type.endswith("BucketObject")]


def test_a_command_of_ones_own_runs_in_the_folder_of_the_image() -> None:
    """Ray starts it in the code's folder, where it has any: `python my/train.py` would not be found."""
    jobs = [{"name": "mine", "pool": "small", "entrypoint": "python my/train.py"}]
    stack = parse_stack(config(platform={**GKE, "code": "archive"}, services=[], jobs=jobs, pools=SMALL))
    assert isinstance(stack.platform, GkePlatform)
    assert runtime_envs(dict(manifests(stack.platform, stack))) == {"rayjob-mine.yaml": {}}


def test_a_paused_service_is_not_brought_up_by_what_is_rendered() -> None:
    services = [{"name": "chat", "pool": "small", "model": "hf:acme/small", "paused": True}]
    stack = parse_stack(config(services=services, jobs=[], pools=SMALL))
    assert isinstance(stack.platform, GkePlatform)
    assert manifests(stack.platform, stack) == {}


def test_a_planted_token_is_in_no_archive_and_no_command() -> None:
    token = "hf_EXAMPLEPLANTED"
    made = declared(config(platform={**GKE, "code": "archive"}), {"tpu-ray:hubToken": token})
    assert token not in repr(copy.deepcopy(made))
    assert all(token.encode() not in archive_of(entry).zipped() for entry in (SERVE_ENTRY, TRAIN_ENTRY))
    assert token not in json.dumps(rendered(code="archive"))
