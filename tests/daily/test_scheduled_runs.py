"""Runs that a schedule began, as the daily commands see them; and the ones that it has not begun."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.platforms.daily import run_named
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.schedule import LABEL, schedule_manifests
from infra.platforms.gke.seeing import Seeing
from infra.platforms.local.daily import LocalDaily
from infra.platforms.state_seen import NOT_WELL, WELL, RunSeen, StackSeen
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.render.stacks import config

Json = dict[str, Any]
JOB: Json = {"name": "nightly", "pool": "small", "schedule": "0 3 * * *"}
NAMESPACE = "/apis/ray.io/v1/namespaces/ml/rayjobs"


def stack(platform: object = None, **job: object) -> StackSpec:
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1"}]
    parts = config(pools=pools, services=[], jobs=[{**JOB, **job}])
    return parse_stack({**parts, "tpu-ray:platform": platform} if platform else parts)


class Holds(Kubernetes):
    """An API server that holds these objects, by their path."""

    def __init__(self, objects: Mapping[str, Json]) -> None:
        self._objects = objects

    def get(self, path: str) -> Any:
        return self._objects.get(path)

    def every(self, path: str, **query: str) -> list[Any]:
        key, _, value = query.get("labelSelector", "").partition("=")
        inside = (one for name, one in self._objects.items() if name.startswith(f"{path}/"))
        return [one for one in inside if not key or one["metadata"].get("labels", {}).get(key) == (value or "true")]


def begun(spec: StackSpec, name: str, day: int, state: str) -> Json:
    labels = {LABEL: f"nightly-{spec.jobs[0].run}"}
    metadata = {"name": name, "labels": labels, "creationTimestamp": f"2026-05-{day:02}T03:00:00Z"}
    return {"metadata": metadata, "spec": {}, "status": {"jobDeploymentStatus": state, "jobStatus": "FAILED"}}


def seen(spec: StackSpec, objects: Mapping[str, Json]) -> tuple[RunSeen, ...]:
    assert isinstance(spec.platform, GkePlatform)
    return Seeing(Holds(objects), spec.platform, spec).runs()


def cron_job(spec: StackSpec) -> dict[str, Json]:
    assert isinstance(spec.platform, GkePlatform)
    made: Json = dict(schedule_manifests(spec.platform, spec, spec.jobs[0])["CronJob"])
    return {f"/apis/batch/v1/namespaces/ml/cronjobs/{made['metadata']['name']}": made}


@pytest.mark.parametrize(("suspend", "why"), [(False, "has begun no run yet"), (True, "is suspended")])
def test_before_its_first_time_a_schedule_is_there_and_waits(suspend: bool, why: str) -> None:
    spec = stack(suspend=suspend)
    (run,) = seen(spec, cron_job(spec))
    assert (run.name, run.state, run.reason) == ("nightly", "pending", f"its schedule, 0 3 * * *, {why}")


def test_a_schedule_that_is_not_there_is_told_as_such() -> None:
    (run,) = seen(stack(), {})
    assert (run.state, run.reason) == ("absent", "there is no CronJob ml/nightly-r1: `up` brings it")


def test_the_newest_run_is_the_one_that_the_jobs_name_means_and_that_counts() -> None:
    spec = stack()
    failed, done = begun(spec, "nightly-a", 1, "Failed"), begun(spec, "nightly-b", 2, "Complete")
    done["status"]["jobStatus"] = "SUCCEEDED"
    runs = seen(spec, {f"{NAMESPACE}/nightly-a": failed, f"{NAMESPACE}/nightly-b": done})
    assert [(run.run, run.state) for run in runs] == [("nightly-b", "succeeded"), ("nightly-a", "failed")]
    assert run_named(runs, "nightly") == "nightly-b"
    assert StackSeen(stack="dev", platform="gke", up=True, jobs=runs).exit_code == WELL
    assert StackSeen(stack="dev", platform="gke", up=True, jobs=runs[::-1]).exit_code == NOT_WELL


@pytest.mark.parametrize(
    ("job", "why"),
    [({}, "a schedule begins its runs in the cloud alone"), ({"schedule": None, "suspend": True}, "it is suspended")],
)
def test_on_one_machine_nobody_is_told_that_up_starts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: Json, why: str
) -> None:
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path))
    daily = LocalDaily("local", stack({"kind": "local"}, **job))
    (run,) = daily.runs()
    daily.close()
    assert (run.state, run.reason) == ("absent", why)
