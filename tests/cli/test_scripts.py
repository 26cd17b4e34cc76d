"""The scripts of the Makefile: plain POSIX shell, and a measuring that measures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/tests.sh", ".ci/run"])
def test_shell_scripts_parse_as_posix_shell(script: str) -> None:
    first = (ROOT / script).read_text().splitlines()[0]
    assert first == "#!/bin/sh"
    ran = subprocess.run(["sh", "-n", str(ROOT / script)], capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stderr


def measured(summary: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/measured.py", "a part", str(summary), sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_part_is_measured_with_what_it_started(tmp_path: Path) -> None:
    child = "import time; x = bytearray(300 * 2**20); time.sleep(3)"
    ran = measured(tmp_path / "s", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    assert ran.returncode == 0
    *name, seconds, gib, result = (tmp_path / "s").read_text().split()
    assert (name, result) == (["a", "part"], "passed")
    assert float(seconds) >= 3
    assert float(gib) >= 0.29


def test_a_failed_part_is_told_and_passed_on(tmp_path: Path) -> None:
    ran = measured(tmp_path / "s", "raise SystemExit(3)")
    assert ran.returncode == 3
    assert (tmp_path / "s").read_text().strip().endswith("FAILED (3)")


@pytest.mark.parametrize(("target", "command"), [("up", "up -s dev"), ("down", "destroy -s dev"), ("lint", "mypy")])
def test_every_target_sets_up_first(target: str, command: str) -> None:
    ran = subprocess.run(
        ["make", "-n", target, "STACK=dev"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.index("scripts/setup.sh") < ran.stdout.index(command)
