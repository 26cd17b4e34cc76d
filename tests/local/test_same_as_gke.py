"""What was tried on one machine is what runs in the cloud: the same Serve application, the same command."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.platforms.gke.manifests import manifests
from infra.platforms.local import deploy as package_deploy
from infra.platforms.local.folders import Folders
from infra.stack import StackSpec, parse_stack
from tests.render.stacks import config
from workloads.spec.versions import LOCKED, installed

STEP = "10"
BUCKET = "/mnt/my-bucket/runs"
"""Where pods have the bucket."""


class Said:
    """A resource's output whose value is known."""

    def __init__(self, value: str) -> None:
        self.value = value

    def apply(self, function: Callable[[str], str]) -> "Said":
        return Said(function(self.value))


class Declared:
    """Stands for every resource; keeps what it was declared with."""

    made: list[tuple[str, dict[str, Any]]]

    def __init__(self, name: str, *_: Any, **inputs: Any) -> None:
        self.made.append((name, inputs))
        self.session, self.step, self.url = Said("s"), Said(STEP), Said("http://x")
        self.run_name = inputs.get("run_name")


def declared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stack: StackSpec) -> dict[str, list[tuple[str, Any]]]:
    """Kind to name and inputs of every resource of a local stack."""
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path))
    # The function of the same name hides its module.
    module = sys.modules[package_deploy.__module__]
    kinds: dict[str, type[Declared]] = {
        kind: type(kind, (Declared,), {"made": []})
        for kind in ("LocalCluster", "JobRun", "JobFinished", "ServeApp", "Ready")
    }
    for kind, stand_in in kinds.items():
        monkeypatch.setattr(module, kind, stand_in)
    monkeypatch.setattr(module.pulumi, "export", lambda *_: None)
    monkeypatch.setattr(module.pulumi, "ResourceOptions", lambda **_: None)

    package_deploy("t", stack)
    return {kind: stand_in.made for kind, stand_in in kinds.items()}


def resources_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pools: list[Any], services: list[Any], jobs: list[Any]
) -> dict[str, list[tuple[str, Any]]]:
    """The resources of the local stack with these pools, services and jobs."""
    stack = parse_stack(config(platform="local", pools=pools, services=services, jobs=jobs))
    return declared(monkeypatch, tmp_path, stack)


def test_application_and_entrypoint_are_those_of_the_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = declared(monkeypatch, tmp_path, parse_stack(config(platform="local")))
    here = str(Folders.of("t").storage)
    texts = {name: inputs["application"] for name, inputs in kinds["ServeApp"]}
    applications = {name: json.loads(getattr(text, "value", text)) for name, text in texts.items()}
    entrypoints = {name: inputs["entrypoint"] for name, inputs in kinds["JobRun"]}

    gke = parse_stack(config())
    assert gke.platform.kind == "gke"
    rendered = manifests(gke.platform, gke)
    assert set(applications) == {"chat", "trained"}
    for name, application in applications.items():
        (there,) = yaml.safe_load(rendered[f"rayservice-{name}.yaml"]["spec"]["serveConfigV2"])["applications"]  # type: ignore[index]
        if name == "trained":
            # A manifest by itself waits for no job, and so does not know which step its model is of.
            assert application["args"].pop("model_version") == STEP
            assert there["args"].pop("model_version") == ""
        assert application["args"].pop("versions") == installed().model_dump()
        assert there["args"].pop("versions") == LOCKED.model_dump()
        assert json.loads(json.dumps(application).replace(here, BUCKET)) == there
    as_there = entrypoints["train"].replace(installed().model_dump_json(), LOCKED.model_dump_json())
    assert as_there.replace(here, BUCKET) == rendered["rayjob-train.yaml"]["spec"]["entrypoint"]  # type: ignore[index]
