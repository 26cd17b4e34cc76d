"""The real engine: the Automation API and plain `pulumi` see one stack, and failures read like sentences."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from infra import program
from infra.automation import workspace
from infra.automation.operate import Operation, Outcome, operate
from infra.automation.project import Project
from infra.automation.workspace import process_environment, working_file
from infra.cli import stacks
from infra.platforms.errors import PlatformError
from infra.pulumi_cli import choose_backend, obtain_cli

pytestmark = pytest.mark.slow


def run(project: Project, operation: Operation) -> Outcome:
    return operate(project, "toy", operation, print)


def pulumi(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Plain `pulumi` with what `tpu-ray env` prints."""
    environment = {**os.environ, **process_environment(obtain_cli(print), choose_backend(project.root))}
    environment.pop("PULUMI_CONFIG_PASSPHRASE", None)
    return subprocess.run(
        ["pulumi", *arguments, "-s", "toy", "--non-interactive"],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_up_then_plain_pulumi_sees_no_change(toy_project: Project) -> None:
    before = toy_project.stack_file("toy").read_bytes()
    up = run(toy_project, "up")
    assert up.ok, up.failures
    assert up.changes["create"] == 2  # the stack itself and the toy
    assert up.outputs["endpoints"] == {"first": "http://127.0.0.1:1/first/v1"}
    assert up.outputs["password"] == "[secret]"
    assert toy_project.stack_file("toy").read_bytes() == before
    plain = pulumi(toy_project, "preview", "--expect-no-changes")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert "2 unchanged" in plain.stdout
    toy_project.stack_file("toy").write_bytes(before)
    copy = working_file(toy_project, choose_backend(toy_project.root), "toy")
    beside = pulumi(toy_project, "preview", "--expect-no-changes", "--config-file", str(copy))
    assert beside.returncode == 0, beside.stdout + beside.stderr
    assert toy_project.stack_file("toy").read_bytes() == before
    again = run(toy_project, "up")
    assert again.ok, again.failures
    assert again.changed == 0
    assert again.changes == {"same": 2}


def test_plain_pulumi_up_then_the_automation_api_sees_no_change(toy_project: Project) -> None:
    assert pulumi(toy_project, "stack", "init").returncode == 0
    plain = pulumi(toy_project, "up", "--yes")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    preview = run(toy_project, "preview")
    assert preview.ok, preview.failures
    assert preview.changed == 0
    assert preview.changes == {"same": 2}
    destroyed = run(toy_project, "destroy")
    assert destroyed.ok, destroyed.failures
    assert destroyed.changes["delete"] == 2
    # What plain pulumi wrote into the file is its own; nothing else of the file changed.
    text = toy_project.stack_file("toy").read_text()
    assert "# A comment that stays." in text
    assert [line.split(":")[0] for line in text.splitlines()[7:]] == ["encryptionsalt"]


def test_a_failed_resource_is_named_with_its_own_words_until_it_is_right(
    toy_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_VALUE", "bad")
    for _ in range(2):
        outcome = run(toy_project, "up")
        assert [(f.resource, f.reason) for f in outcome.failures] == [
            ("Toy first", "wanted a good value, found bad\nnext: write another one")
        ]
    monkeypatch.setenv("TOY_VALUE", "bug")
    (failure,) = run(toy_project, "up").failures
    assert failure.reason == "KeyError: 'no such key'"
    assert "toy.py" in failure.details
    monkeypatch.setenv("TOY_VALUE", "good")
    outcome = run(toy_project, "up")
    assert outcome.ok, outcome.failures


OURS, A_CLOUDS = "pulumi-python:dynamic/tpu-ray:Toy", "gcp:container/cluster:Cluster"
INTERRUPTED = "the last run was interrupted"


def leave_begun(backend: Path, kind: str) -> None:
    """Change the stack's state to what a run leaves that is killed while it creates a resource of this type."""
    file = backend / ".pulumi" / "stacks" / "tpu-ray" / "toy.json"
    state = json.loads(file.read_text())
    resource = {"urn": f"urn:pulumi:toy::tpu-ray::{kind}::second", "custom": True, "type": kind}
    state["checkpoint"]["latest"]["pending_operations"] = [{"resource": resource, "type": "creating"}]
    file.write_text(json.dumps(state))


def test_what_a_killed_run_had_begun_is_told_once(toy_project: Project, logged_out: Path) -> None:
    assert run(toy_project, "up").ok
    leave_begun(logged_out / "backend", OURS)
    told: list[str] = []
    operations: list[Operation] = ["preview", "up", "up"]
    for operation in operations:
        outcome = operate(toy_project, "toy", operation, told.append)
        assert outcome.ok, outcome.failures
        assert outcome.changed == 0
    assert [line for line in told if "interrupted" in line] == [f"{INTERRUPTED}; what it had begun is looked at again"]


def test_what_a_killed_run_may_have_left_in_a_cloud_is_not_forgotten(toy_project: Project, logged_out: Path) -> None:
    assert run(toy_project, "up").ok
    leave_begun(logged_out / "backend", A_CLOUDS)
    for _ in range(2):
        told: list[str] = []
        assert operate(toy_project, "toy", "up", told.append).ok
        assert f"{A_CLOUDS}::second, interrupted while creating" in "\n".join(told)
        assert INTERRUPTED not in "\n".join(told)


@pytest.mark.parametrize("change", ["wrong", "no yaml", "gone"])
def test_what_a_stack_made_can_be_ended_whatever_its_file_says_now(
    toy_project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    monkeypatch.chdir(toy_project.root)
    assert run(toy_project, "up").ok
    ended: list[str] = []
    monkeypatch.setattr("infra.platforms.local.cluster.stop", lambda stack, _: ended.append(stack))
    file = toy_project.stack_file("toy")
    if change == "gone":
        file.unlink()
    else:
        text = file.read_text()
        file.write_text(text.replace("topology: 1x1", "topology: 3x3") if change == "wrong" else "config: [}")
    assert stacks.run("refresh", "toy", as_json=False) == 0
    assert ended == []
    assert stacks.run("destroy", "toy", as_json=False) == 0
    assert ended == ["toy"], "also a local cluster that Pulumi does not know is ended"
    shown = capsys.readouterr()
    assert "stack toy destroyed" in shown.out
    assert "2 delete" in shown.out
    assert change != "wrong" or "tpu-ray:pools[0].topology" in shown.err

    def hangs(*_: object) -> None:
        raise PlatformError("processes of the cluster could not be ended", found="process 7")

    monkeypatch.setattr("infra.platforms.local.cluster.stop", hangs)
    assert stacks.run("destroy", "toy", as_json=False) == 1
    assert "process 7" in capsys.readouterr().err


def test_a_wrong_stack_file_stops_the_program_without_a_traceback(
    toy_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = toy_project.stack_file("toy")
    file.write_text(file.read_text().replace("topology: 1x1", "topology: 3x3"))
    monkeypatch.setattr(workspace, "deploy", program.deploy)
    (failure,) = run(toy_project, "preview").failures
    assert "tpu-ray:pools[0].topology" in failure.reason
    assert "Traceback" not in failure.reason
    (toy_project.root / "infra" / "__main__.py").write_text("from infra.program import deploy\n\ndeploy()\n")
    plain = pulumi(toy_project, "preview")
    assert plain.returncode != 0
    assert "tpu-ray:pools[0].topology" in plain.stdout + plain.stderr
    assert "Traceback" not in plain.stdout + plain.stderr


def test_the_salt_of_another_machine_in_the_stack_file_does_not_matter(toy_project: Project) -> None:
    file = toy_project.stack_file("toy")
    salt = "encryptionsalt: v1:bhoFvZ0x29U=:v1:i6JMnxx+2ijRJYdv:CVFqPG3LglhQnQQtOtioCgR1qlkIzQ==\n"
    file.write_text(file.read_text() + salt)
    operations: tuple[Operation, ...] = ("up", "preview", "refresh", "destroy")
    for operation in operations:
        outcome = run(toy_project, operation)
        assert outcome.ok, outcome.failures


def test_destroying_a_stack_that_is_not_there_changes_nothing(toy_project: Project) -> None:
    outcome = run(toy_project, "destroy")
    assert outcome.ok
    assert outcome.changes == {}


def test_the_state_is_for_the_user_alone(toy_project: Project, logged_out: Path) -> None:
    assert run(toy_project, "up").ok
    assert (logged_out / "passphrase").stat().st_mode & 0o077 == 0
    assert logged_out.stat().st_mode & 0o077 == 0
    state = (logged_out / "backend" / ".pulumi" / "stacks" / "tpu-ray" / "toy.json").read_text()
    assert "sesame" not in state
