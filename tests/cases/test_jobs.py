"""Runs that keep what they should give back, or trust what they should not."""

import json
from typing import Any

import pytest

from infra.platforms.gke.job_manifest import ray_job
from infra.platforms.gke.schedule import schedule_manifests
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.cases.stacks import config, mistakes, pool

JOB: dict[str, Any] = {"name": "train", "pool": "a", "data": {"global_batch": 2**14}}
OWN: dict[str, Any] = {"name": "mine", "pool": "a", "entrypoint": "python my/train.py"}


def run_of(job: dict[str, Any]) -> dict[str, Any]:
    stack = parse_stack(config(pool(), jobs=(job,)))
    assert isinstance(stack.platform, GkePlatform)
    return dict(ray_job(stack.platform, stack, stack.jobs[0]))


@pytest.mark.parametrize(
    "job", [JOB, OWN, {**JOB, "retries": 3}, {**OWN, "suspend": True}, {**JOB, "keep_cluster_s": 0}]
)
def test_a_finished_run_gives_its_slice_back_also_after_a_failure(job: dict[str, Any]) -> None:
    """kuberay#1023, kuberay#1101, kuberay#1200: the ttl alone does nothing. KubeRay shuts down after either end."""
    spec = run_of(job)["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["ttlSecondsAfterFinished"] == job.get("keep_cluster_s", 300)
    # KubeRay refuses a suspended run whose cluster would stay.
    assert spec["suspend"] is job.get("suspend", False)


def test_a_scheduled_run_gives_its_slice_back_too() -> None:
    """kuberay#1023, once a night."""
    stack: StackSpec = parse_stack(config(pool(), jobs=({**JOB, "schedule": "0 3 * * *"},)))
    assert isinstance(stack.platform, GkePlatform)
    (container,) = schedule_manifests(stack.platform, stack, stack.jobs[0])["CronJob"]["spec"]["jobTemplate"]["spec"][  # type: ignore[index]
        "template"
    ]["spec"]["containers"]
    spec = json.loads(json.loads(container["env"][0]["value"].replace("$$", "$"))["manifest"])["spec"]
    assert (spec["shutdownAfterJobFinishes"], spec["ttlSecondsAfterFinished"]) == (True, 300)


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ({"shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 60}, "keep_cluster_s"),
        ({"shutdown_after_job_finishes": True}, "keep_cluster_s"),
        ({"ttl-seconds-after-finished": 60}, "keep_cluster_s"),
        ({"backoffLimit": 2}, "retries"),
    ],
)
def test_kuberays_own_words_are_refused_with_ours(written: dict[str, object], ours: str) -> None:
    """kuberay#3627: the two that only work together cannot be told apart from one another."""
    found = mistakes(config(pool(), jobs=({**JOB, **written},)))
    assert set(found) == {f"jobs[0].{key}" for key in written}
    assert {problem.nearest for problem in found.values()} == {ours}
    assert all(ours in problem.reason for problem in found.values())


@pytest.mark.parametrize(("topology", "most"), [("4x4", 35), ("2x2", 47)])
def test_a_scheduled_runs_name_is_limited_after_its_time(topology: str, most: int) -> None:
    """kuberay#2923, kuberay#3083: checked after any suffix."""
    for length, right in ((most - 11, True), (most - 10, False)):
        job = {**JOB, "name": "j" * (length - 3), "run": "r1", "schedule": "0 3 * * *"}
        found = mistakes(config(pool(topology=topology), jobs=(job,)))
        assert list(found) == ([] if right else ["jobs[0].name"])
        if not right:
            nearest = found["jobs[0].name"].nearest
            assert mistakes(config(pool(topology=topology), jobs=({**job, "name": nearest},))) == {}


@pytest.mark.parametrize(
    "name", ["MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID", "MEGASCALE_PORT", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"]
)
def test_what_changes_at_every_restart_is_not_written_into_pods(name: str) -> None:
    """ray#62893: replacement pods were told of slices that no longer existed, and the job hung."""
    found = mistakes(config(pool(), jobs=({**OWN, "env": {name: "3"}},)))
    assert list(found) == [f"jobs[0].env.{name}"]


@pytest.mark.parametrize("job", [JOB, {**OWN, "env": {"LOG_LEVEL": "debug"}}, {**OWN, "entrypoint": "a && b"}])
def test_no_pod_of_a_run_carries_a_place_in_a_slice(job: dict[str, Any]) -> None:
    """ray#62893."""
    text = json.dumps(run_of(job))
    assert "MEGASCALE_" not in text
    assert "TPU_WORKER_" not in text


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD"])
def test_a_secret_is_no_variable_of_a_job_and_is_shown_nowhere(name: str) -> None:
    """pulumi#16383: in the manifest everybody who may read the run would read it."""
    found = mistakes(config(pool(), jobs=({**OWN, "env": {name: "hf_EXAMPLE"}},)))
    assert list(found) == [f"jobs[0].env.{name}"]
    assert "hf_EXAMPLE" not in str(found)


def test_a_secure_value_in_a_jobs_environment_is_refused() -> None:
    """pulumi#6531."""
    found = mistakes(config(pool(), jobs=({**OWN, "env": {"LOG_LEVEL": {"secure": "v1:EXAMPLE"}}},)))
    assert "jobs[0].env.LOG_LEVEL" in found
    assert "v1:EXAMPLE" not in str(found)
