"""What is read from a RayJob, from Ray's job details and from a run's own files."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.platforms.gke.runs_seen import run_seen, step_in
from infra.platforms.gke.slices_there import NODE_POOL, slices_there
from infra.platforms.local.daily import progress
from infra.platforms.ray_runs import submitted_run
from infra.platforms.serve_logs import replicas
from infra.stack import PoolSpec
from workloads.spec import JobLaunch, JobSpec, resolve_slice

Json = dict[str, Any]
STOPPED = {"annotations": {"tpu-ray/stopped": "2026-05-01T10:00:00+00:00"}}
QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "tpu-ray"}}


def job(metadata: Json | None = None, spec: Json | None = None, **status: str) -> Json:
    return {"metadata": {"name": "story-r1", **(metadata or {})}, "spec": spec or {}, "status": status}


@pytest.mark.parametrize(
    ("seen", "state", "reason"),
    [
        (job(), "pending", "KubeRay has not looked at it: is the Ray operator add-on of the cluster on?"),
        (job(jobDeploymentStatus="Initializing"), "pending", ""),
        (job(jobDeploymentStatus="Waiting"), "pending", ""),
        (job(jobDeploymentStatus="Running"), "pending", ""),
        (job(jobDeploymentStatus="Running", jobStatus="RUNNING"), "running", ""),
        (job(jobDeploymentStatus="Running", jobStatus="SUCCEEDED"), "succeeded", ""),
        (job(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), "succeeded", ""),
        (job(jobDeploymentStatus="Complete", jobStatus="STOPPED"), "stopped", ""),
        (job(jobDeploymentStatus="Failed", reason="AppFailed", message="exit 7"), "failed", "AppFailed: exit 7"),
        (
            job(jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="odd"),
            "failed",
            "ValidationFailed: odd",
        ),
        (job(QUEUED, {"suspend": True}, jobDeploymentStatus="Suspended"), "pending", "it waits in queue tpu-ray"),
        (job(jobDeploymentStatus="Suspended"), "pending", "it is suspended"),
        (job(STOPPED, {"suspend": True}, jobDeploymentStatus="Suspended"), "stopped", ""),
        (job(STOPPED, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), "succeeded", ""),
    ],
)
def test_the_state_of_a_ray_job(seen: Json, state: str, reason: str) -> None:
    found = run_seen("story", seen, "quad")
    assert (found.state, found.reason) == (state, reason)
    assert (found.name, found.run, found.pool, found.submitted) == ("story", "story-r1", "quad", False)


def test_a_submitted_ray_job_says_its_pool_itself() -> None:
    labels = {"labels": {"tpu-ray/submitted": "true"}, "annotations": {"tpu-ray/pool": "quad"}}
    found = run_seen("story-r1", job(labels))
    assert (found.pool, found.submitted) == ("quad", True)


def test_the_last_step_of_a_log_counts() -> None:
    assert step_in("step 4/10 epoch 0\n(Worker pid=1) step 5/10 epoch 0\nother") == "step 5 of 10"
    assert step_in("no such word: stepping 4/10") == ""


def test_only_what_was_submitted_is_taken_from_rays_list() -> None:
    details = {"submission_id": "mine", "status": "FAILED", "message": "exit 7\nlog", "driver_exit_code": 7}
    assert submitted_run(details) is None
    assert submitted_run({**details, "metadata": {"tpu-ray-pool": "quad"}}) is None
    seen = submitted_run({**details, "metadata": {"tpu-ray-submitted": "true", "tpu-ray-submitted-pool": "quad"}})
    assert seen is not None
    assert (seen.run, seen.pool, seen.state, seen.exit_code, seen.reason) == ("mine", "quad", "failed", 7, "exit 7")


def test_progress_is_read_from_the_runs_metrics_whatever_their_last_line_is(tmp_path: Path) -> None:
    launch = JobLaunch(
        job=JobSpec(name="story", pool="quad", steps=9), slice=resolve_slice("v6e", "4x4"), storage=str(tmp_path)
    )
    assert progress(launch) == ""
    folder = tmp_path / "story-r1"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 3}) + "\n" + '{"step": 4, "lo')
    assert progress(launch) == "step 4 of 9"


def test_the_log_of_dead_replicas_is_shown_only_where_none_lives() -> None:
    dead = {"replica_id": "a", "node_id": "n", "log_file_path": "/serve/a.log"}
    alive, without = {**dead, "replica_id": "b", "log_file_path": "/serve/b.log"}, {"replica_id": "c", "node_id": None}
    both = {"deployments": {"Llm": {"replicas": [without, alive], "recent_dead_replicas": [dead]}}}
    assert list(replicas(both)) == [("b", "n", "serve/b.log")]
    only = {"deployments": {"Llm": {"replicas": [without], "recent_dead_replicas": [dead]}}}
    assert list(replicas(only)) == [("a", "n", "serve/a.log")]


def test_hosts_of_two_slices_are_not_one() -> None:
    pool = PoolSpec(name="quad", generation="v6e", topology="4x4")

    def node(node_pool: str, ready: str = "True") -> Json:
        conditions = [{"type": "Ready", "status": ready}]
        return {"metadata": {"labels": {NODE_POOL: node_pool}}, "status": {"conditions": conditions}}

    assert slices_there(pool, [node("quad-0"), node("quad-0"), node("quad-1"), node("quad-1")]) == 0
    assert slices_there(pool, [node("quad-0")] * 4 + [node("quad-1", "Unknown")] * 4) == 1
