"""The borders between the rooms: who may import whom, and what importing a room must not bring in."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("infra", "workloads")
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "common"}
MAX_LINES = 350


def modules(room: str) -> list[Path]:
    """Every Python file of a room."""
    found = sorted((ROOT / room).rglob("*.py"))
    assert found, f"no files in {room}: the test would hold nothing"
    return found


def imported(path: Path) -> set[str]:
    """Full names of all that a file imports, anywhere in it; `from a.b import c` counts as `a.b.c`."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def of_package(names: set[str], *packages: str) -> set[str]:
    """Those of the names that are one of the packages or lie in it."""
    return {name for name in names if any(f"{name}.".startswith(f"{package}.") for package in packages)}


def test_infra_takes_only_the_spec_from_workloads() -> None:
    for path in modules("infra"):
        names = imported(path)
        assert of_package(names, "workloads") == of_package(names, "workloads.spec"), path


def test_workloads_never_imports_infra() -> None:
    for path in modules("workloads"):
        assert not of_package(imported(path), "infra", "pulumi"), path


def test_the_spec_is_pure() -> None:
    for path in modules("workloads/spec"):
        names = imported(path)
        assert not of_package(names, "pulumi", "ray", "jax", "flax", "numpy"), path
        assert of_package(names, "workloads") == of_package(names, "workloads.spec"), path


def test_pulumi_is_imported_only_where_resources_are_made() -> None:
    allowed = {ROOT / "infra/program.py", *modules("infra/platforms"), *modules("infra/automation")}
    allowed |= set(modules("infra/components"))
    allowed |= set(modules("infra/pulumi_cli"))
    for path in modules("infra"):
        if path not in allowed:
            assert not of_package(imported(path), "pulumi"), path


@pytest.mark.parametrize("room", [*ROOMS, "tpu_ray", "bench", "tests", "scripts"])
def test_files_are_small_and_named_after_what_they_hold(room: str) -> None:
    for path in modules(room):
        assert not FORBIDDEN_NAMES & set(path.relative_to(ROOT).with_suffix("").parts), path
        assert len(path.read_text().splitlines()) <= MAX_LINES, path


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("workloads.spec", ("pulumi", "ray", "jax", "numpy")),
        ("infra.stack", ("pulumi", "ray", "jax")),
        ("infra.plan.launches, infra.plan.workloads", ("pulumi", "ray", "jax")),
        ("infra.plan.report, infra.plan.node_pools", ("pulumi", "ray", "jax")),
        ("infra.cli", ("pulumi", "ray", "jax")),
        ("infra.program", ("ray", "jax")),
        ("workloads.serve.app", ("pulumi", "jax")),
        ("workloads.serve.mark", ("pulumi", "jax")),
        ("workloads.declared", ("pulumi", "ray", "jax")),
        ("workloads.train.__main__", ("pulumi", "jax")),
    ],
)
def test_importing_a_module_leaves_heavy_packages_out(module: str, unwanted: tuple[str, ...]) -> None:
    """A driver, a head or an ingress that imports jax takes the chips of its host away from the worker."""
    code = f"import sys, {module}; print([name for name in {unwanted!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"
