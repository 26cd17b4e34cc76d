"""Runs of a user's own command on one machine: what is submitted, and when."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local import jobs
from infra.platforms.local.job_command import limited
from infra.platforms.local.job_resource import JobFinishedProvider, JobRunProvider
from tests.local.test_leaving import Ray, ray, run, silent
from tests.local.test_same_as_gke import resources_of
from workloads.spec import DeclaredRun, JobSpec

__all__ = ["ray"]

POOLS = [{"name": "quad", "generation": "v6e", "topology": "4x4", "slices": 3}]
OWN: dict[str, Any] = {"name": "mine", "pool": "quad", "entrypoint": "python my/train.py"}


def test_its_command_and_environment_are_submitted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resources_of(monkeypatch, tmp_path, POOLS, [], [{**OWN, "env": {"LOG_LEVEL": "debug"}, "timeout_s": 60}])
    ((name, inputs),) = made["JobRun"]
    assert name == "mine"
    assert "python my/train.py" in inputs["entrypoint"]
    assert inputs["env"]["LOG_LEVEL"] == "debug"
    told = DeclaredRun.model_validate_json(inputs["env"]["TPU_RAY_LAUNCH"])
    assert (told.run, told.slice.hosts, told.export) == ("mine-r1", 4, inputs["export_dir"])
    assert made["JobFinished"] == []


def test_up_waits_for_it_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = resources_of(monkeypatch, tmp_path, POOLS, [], [{**OWN, "wait": True}])
    ((_, inputs),) = made["JobFinished"]
    assert (inputs["needs_export"], inputs["suspended"]) == (False, False)
    service = {"name": "chat", "pool": "quad", "model": "job:mine"}
    made = resources_of(monkeypatch, tmp_path, POOLS, [service], [OWN])
    assert made["JobFinished"][0][1]["needs_export"] is True


def test_a_suspended_run_and_a_scheduled_job_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = [{**OWN, "suspend": True}, {"name": "night", "pool": "quad", "schedule": "0 3 * * *"}]
    made = resources_of(monkeypatch, tmp_path, POOLS, [], gone)
    assert made["JobRun"] == []
    # So what of them still runs is ended.
    made = resources_of(monkeypatch, tmp_path, POOLS, [], [*gone, {"name": "stays", "pool": "quad"}])
    assert made["JobRun"][0][1]["declared"] == '{"services": [], "runs": ["stays-r1"]}'


def test_its_variables_reach_the_driver_and_its_workers(ray: Ray) -> None:
    JobRunProvider().create(run("echo", env='{"A": "b"}'))
    assert ray.jobs["story-r1"]["runtime_env"] == {"env_vars": {"A": "b"}}
    JobRunProvider().create(
        run("echo", run_name="plain-r1", env="{}", declared='{"services": [], "runs": ["plain-r1"]}')
    )
    assert "runtime_env" not in ray.jobs["plain-r1"]


def test_another_variable_waits_for_the_next_run_unless_this_one_failed(ray: Ray) -> None:
    olds, news = run("echo", env='{"A": "b"}'), run("echo", env='{"A": "c"}')
    JobRunProvider().create(olds)
    assert not JobRunProvider().diff("story-r1", olds, news).changes
    ray.jobs["story-r1"]["status"] = "FAILED"
    assert JobRunProvider().diff("story-r1", olds, news).changes
    assert JobRunProvider().update("story-r1", olds, news).outs == news
    assert ray.jobs["story-r1"]["runtime_env"] == {"env_vars": {"A": "c"}}


def finished(**other: Any) -> dict[str, Any]:
    return {"stack": "t", "run_name": "story-r1", "export_dir": "/nowhere", "timeout_s": 1, "step": None, **other}


def test_success_is_enough_where_nobody_serves_a_model(ray: Ray) -> None:
    jobs.submit("t", "story-r1", "echo", "right")
    ray.jobs["story-r1"]["status"] = "SUCCEEDED"
    props = finished(needs_export=False)
    outs = JobFinishedProvider().create(props).outs
    assert outs is not None
    assert not JobFinishedProvider().diff("story-r1", outs, props).changes
    with pytest.raises(PlatformError, match="left no model"):
        JobFinishedProvider().create(finished(needs_export=True))


def test_a_failure_is_told_with_the_end_of_its_log(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.submit("t", "story-r1", "echo", "right")
    ray.jobs["story-r1"]["status"] = "FAILED"
    with pytest.raises(PlatformError, match="did not succeed"):
        jobs.wait_for_export("t", "story-r1", "/nowhere", 1, silent, needs_export=False)


def test_a_suspended_run_is_waited_for_only_where_its_model_is_there(ray: Ray, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match=r"story-r1 is suspended(.|\n)*suspend: true"):
        JobFinishedProvider().create(finished(suspended=True))
    (tmp_path / "export.json").write_text('{"step": 7}')
    outs = JobFinishedProvider().create(finished(suspended=True, export_dir=str(tmp_path))).outs
    assert outs is not None
    assert outs["step"] == "7"


def shell(command: str, timeout_s: int = 60) -> SimpleNamespace:
    # Shorter than a stack file may have it.
    job = JobSpec(name="a", pool="b", entrypoint=command).model_copy(update={"timeout_s": timeout_s})
    done = subprocess.run(limited(job, command), shell=True, capture_output=True, text=True, check=False)
    return SimpleNamespace(code=done.returncode, out=done.stdout)


def test_a_command_keeps_its_limit_and_says_which_one() -> None:
    assert shell("echo 'a  b' && echo \"$((1 + 1))\"").out == "a  b\n2\n"
    assert shell("exit 3").code == 3
    late = shell("echo begun; sleep 600", timeout_s=1)
    assert late.code == 124
    assert late.out == "begun\nerror: the command took longer than timeout_s: 1\n"


def test_the_recipe_keeps_its_limit_by_itself() -> None:
    assert limited(JobSpec(name="a", pool="b"), "python -m workloads.train '{}'") == "python -m workloads.train '{}'"
