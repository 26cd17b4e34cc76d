"""What is rendered is valid for KubeRay's own CRDs, of the two versions that GKE may run."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.render.kuberay import VERSIONS, schema
from tests.render.stacks import config

ROOT = Path(__file__).parents[2]


def rendered() -> dict[str, Any]:
    stack = parse_stack(config())
    assert isinstance(stack.platform, GkePlatform)
    return dict(manifests(stack.platform, stack))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(rendered()))
def test_manifests_are_valid_for_kuberay(version: str, name: str) -> None:
    manifest = rendered()[name]
    jsonschema.Draft202012Validator(schema(version, manifest["kind"])).validate(manifest)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_would_refuse_a_wrong_manifest(version: str) -> None:
    """So that the test above can fail: a misspelt field, a wrong type, a missing part."""
    manifest = rendered()["rayservice-chat.yaml"]
    validator = jsonschema.Draft202012Validator(schema(version, "RayService"))
    misspelt, mistyped, lacking = (copy.deepcopy(manifest) for _ in range(3))
    group = misspelt["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    group["numHosts"] = group.pop("numOfHosts")
    mistyped["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] = "1"
    del lacking["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["groupName"]
    for wrong, word in ((misspelt, "numHosts"), (mistyped, "integer"), (lacking, "groupName")):
        found = [error.message for error in validator.iter_errors(wrong)]
        assert len(found) == 1
        assert word in found[0]


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infra.cli", "render", "-s", "dev", "-o", str(tmp_path / "out"), "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    files = [Path(name) for name in json.loads(ran.stdout)]
    kinds = {yaml.safe_load(file.read_text())["kind"] for file in files}
    assert kinds == {"RayService", "RayJob"}
    for file in files:
        manifest = yaml.safe_load(file.read_text())
        for version in VERSIONS:
            jsonschema.Draft202012Validator(schema(version, manifest["kind"])).validate(manifest)
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", manifest["metadata"]["name"])


def test_a_local_stack_has_no_manifests(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infra.cli", "render", "-s", "local", "-o", str(tmp_path / "out")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "tpu-ray:platform" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "out").exists()
