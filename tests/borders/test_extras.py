"""The extras of the project: a preview installs no JAX and no Ray, a pod installs no Pulumi."""

import tomllib
from collections import deque
from importlib import resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def closure(extra: str) -> set[str]:
    """Every package that `tpu-ray[extra]` brings, by walking uv.lock; markers are ignored, so it is the largest set."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    packages = {package["name"]: package for package in lock["package"]}
    own = packages["tpu-ray"]
    queue = deque([*own["dependencies"], *own["optional-dependencies"][extra]])
    seen: set[str] = set()
    while queue:
        need = queue.popleft()
        package = packages[need["name"]]
        if package["name"] not in seen:
            seen.add(package["name"])
            queue.extend(package.get("dependencies", []))
        for wanted in need.get("extra", []):
            queue.extend(package.get("optional-dependencies", {}).get(wanted, []))
    return seen


def test_a_preview_installs_neither_jax_nor_ray() -> None:
    found = closure("infra")
    assert {"pulumi", "pulumi-gcp", "pulumi-kubernetes", "typer", "pydantic"} <= found
    assert not found & {"jax", "jaxlib", "ray", "flax", "orbax-checkpoint", "tokenizers"}


def test_a_pod_installs_no_pulumi() -> None:
    found = closure("workloads")
    assert {"jax", "ray", "flax", "orbax-checkpoint", "pydantic"} <= found
    assert not {name for name in found if name.startswith("pulumi")}


@pytest.mark.parametrize("room", ["infra", "workloads"])
def test_the_rooms_are_typed(room: str) -> None:
    assert resources.files(room).joinpath("py.typed").is_file()


def test_the_pinned_cli_is_as_new_as_the_sdk_wants() -> None:
    from infra.pulumi_cli.locate import BUILD_VERSION, MINIMUM_VERSION, parse_version

    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needs = [Requirement(line) for line in pyproject["project"]["optional-dependencies"]["infra"]]
    sdk = next(need for need in needs if need.name == "pulumi")
    built = parse_version(BUILD_VERSION)
    assert built is not None
    assert built >= MINIMUM_VERSION
    assert sdk.specifier.contains(BUILD_VERSION)
    assert sdk.specifier.contains(".".join(map(str, MINIMUM_VERSION)))
    pinned = (ROOT / "infra/pulumi_cli/build/engine/go.mod").read_text()
    assert f"github.com/pulumi/pulumi/pkg/v3 v{BUILD_VERSION}" in pinned
    assert f"github.com/pulumi/pulumi/sdk/v3 v{BUILD_VERSION}" in pinned
