"""`tpu-ray local`: exit codes and JSON where no cluster runs."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.cli.local import app


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path / "home"))


def test_status_without_a_cluster_says_so() -> None:
    result = CliRunner().invoke(app, ["status", "-s", "t", "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"stack": "t", "exists": False, "alive": False, "dead": []}


def test_stop_without_a_cluster_is_no_error() -> None:
    result = CliRunner().invoke(app, ["stop", "-s", "t", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"stopped": False}


def test_start_refuses_a_wrong_file_with_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.t.yaml"
    file.write_text(
        "config:\n  tpu-ray:platform: local\n  tpu-ray:pools:\n    - {name: a, generation: v6e, topology: 9x9}\n"
    )
    result = CliRunner().invoke(app, ["start", "-s", "t", "-f", str(file)])
    assert result.exit_code == 2
    assert "tpu-ray:pools[0].topology" in result.stderr
    result = CliRunner().invoke(app, ["start", "-s", "t", "-f", str(file), "--json"])
    assert result.exit_code == 2
    problems = json.loads(result.stdout)["problems"]
    assert [(problem["key"], problem["value"]) for problem in problems] == [
        ("tpu-ray:pools[0].topology", "9x9"),
        ("tpu-ray:pools[0].name", "a"),
    ]


def test_start_refuses_a_stack_of_another_platform() -> None:
    result = CliRunner().invoke(app, ["start", "-s", "dev", "-f", "stacks/Pulumi.dev.yaml", "--json"])
    assert result.exit_code == 2
    assert "gke, not local" in json.loads(result.stdout)["error"]
