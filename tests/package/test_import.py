"""`import tpu_ray` beside a program's own packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOUND = "tpu-ray needs its own package {name}, and Python finds another one: {place}; rename that one"


def imported(folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in the folder that imports it."""
    (folder / "program.py").write_text("import tpu_ray; print(tpu_ray.SlicePool.__name__)\n")
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "program.py")],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", ["infra", "workloads"])
@pytest.mark.parametrize("file", ["{}/__init__.py", "{}.py"])
def test_a_package_or_module_of_the_same_name_is_named(tmp_path: Path, name: str, file: str) -> None:
    other = tmp_path / file.format(name)
    other.parent.mkdir(exist_ok=True)
    other.touch()
    place = other if other.parent == tmp_path else other.parent
    assert FOUND.format(name=name, place=place) in imported(tmp_path).stderr


def test_a_folder_without_python_in_it_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    done = imported(tmp_path)
    assert done.stdout == "SlicePool\n", done.stderr
