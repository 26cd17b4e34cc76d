"""Variables by reference, in the pods of services and runs and nowhere else."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.render.kuberay import VERSIONS, schema
from tests.render.stacks import GKE, config

ENV = {"API_KEY": {"secret": "keys", "key": "api-key"}}
REFERENCE = {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api-key"}}}
SERVICES: list[dict[str, Any]] = [
    {"name": "jax", "model": "/models/a"},
    {"name": "vllm", "model": "hf:acme/small", "engine": "vllm"},
    {"name": "app", "engine": {"kind": "app", "import_path": "my_app:build"}},
]
JOBS: list[dict[str, Any]] = [
    {"name": "recipe"},
    {"name": "own", "entrypoint": "python my/train.py"},
    {"name": "night", "schedule": "0 3 * * *"},
]


def rendered(secret_env: dict[str, Any]) -> dict[str, dict[str, Any]]:
    pools = [{"name": "big", "generation": "v6e", "topology": "4x4", "slices": 6}]
    services, jobs = (
        [{**entry, "pool": "big", "secret_env": secret_env} for entry in entries] for entries in (SERVICES, JOBS)
    )
    stack = parse_stack(config(platform=GKE, pools=pools, services=services, jobs=jobs))
    assert isinstance(stack.platform, GkePlatform)
    return json.loads(json.dumps(manifests(stack.platform, stack)))  # type: ignore[no-any-return]


def pods(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"]
    cluster = spec["rayClusterConfig"] if manifest["kind"] == "RayService" else spec["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


FILES = [f"rayservice-{s['name']}.yaml" for s in SERVICES] + ["rayjob-recipe.yaml", "rayjob-own.yaml"]


@pytest.mark.parametrize("file", FILES)
def test_every_host_and_the_head_get_it_from_kubernetes(file: str) -> None:
    manifest = rendered(ENV)[file]
    for pod in pods(manifest):
        names = [entry["name"] for entry in pod["containers"][0]["env"]]
        assert len(names) == len(set(names))
        assert REFERENCE in pod["containers"][0]["env"]
    for version in VERSIONS:
        jsonschema.validate(manifest, schema(version, manifest["kind"]))


@pytest.mark.parametrize("file", FILES)
def test_nothing_else_of_the_object_knows_it(file: str) -> None:
    """Not Serve's config, no runtime_env, no argument: what differs is the pods' environment alone."""
    manifest, without = rendered(ENV)[file], rendered({})[file]
    for pod in pods(manifest):
        pod["containers"][0]["env"].remove(REFERENCE)
    marks = [one["metadata"].pop("annotations", None) for one in (manifest, without)]
    assert manifest == without
    # A service's pods are others then, and its Ray cluster is told to be.
    assert (marks[0] != marks[1]) == (manifest["kind"] == "RayService")


def test_another_order_makes_no_other_pods() -> None:
    second = {"B_KEY": {"secret": "keys", "key": "b"}}
    assert rendered({**ENV, **second}) == rendered({**second, **ENV})


def test_the_runs_of_a_schedule_get_it_too() -> None:
    files = rendered(ENV)
    told = json.dumps([yaml.safe_dump(one) for name, one in files.items() if name.endswith("-night.yaml")])
    assert "api-key" in told
    assert "secretKeyRef" in told
