"""Runs on the engine, a real API server and a double of KubeRay: what waits for them, and what an edit does to them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gke.edit import PLATFORM
from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import OBJECT
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.control_plane import control_plane
from tests.rig.kube.kuberay import RAY, KubeRay, kuberay
from tests.rig.kube.kuberay_jobs import JobCourse, Json, completes, fails, runs

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

RUNS, SERVICES = f"{RAY}/namespaces/tpu-ray/rayjobs", f"{RAY}/namespaces/tpu-ray/rayservices"
BUCKET = "my-tpu-project-tpu-ray"


def config(**job: object) -> dict[str, Any]:
    """A job and a service of its model, which share the only slice of their pool."""
    return {
        "tpu-ray:platform": dict(PLATFORM),
        "tpu-ray:pools": [{"name": "quad", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}}],
        "tpu-ray:services": [{"name": "tale", "pool": "quad", "model": "job:story"}],
        "tpu-ray:jobs": [{"name": "story", "pool": "quad", **job}],
    }


class Cluster:
    """The stack, its KubeRay, and the bucket that runs write to."""

    def __init__(self, stack: GkeCheckout, operator: KubeRay) -> None:
        self.stack, self.operator = stack, operator

    def exports(self, run: str, content: str) -> JobCourse:
        """The run ends with success, and leaves this export.json. While it runs, nothing else may have its slice."""

        def course(operator: KubeRay, job: Json) -> Json:
            assert not self.stack.plane.every(SERVICES), "the service still has the slice"
            with self.stack.cloud.held.change() as things:
                things.put(OBJECT, f"{BUCKET}/{run}/export/export.json", Thing({}, {"content": content}))
            return completes(operator, job)

        return course

    def names(self, path: str) -> set[str]:
        return {one["metadata"]["name"] for one in self.stack.plane.every(path)}

    def served_step(self) -> str:
        """The version that the service was told to serve."""
        (service,) = self.stack.plane.every(SERVICES)
        (line,) = [line for line in service["spec"]["serveConfigV2"].splitlines() if "model_version" in line]
        return str(line.partition(":")[2]).strip(" '\"")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One stack for this module: the tests below are the steps of its life, in their order."""
    folder = tmp_path_factory.mktemp("jobs")
    with control_plane(folder / "plane") as plane, kuberay(plane) as operator:
        yield Cluster(GkeCheckout(folder, "dev", plane, config()), operator)


def test_a_failed_run_fails_every_up_and_its_service_is_not_made(cluster: Cluster) -> None:
    cluster.operator.job_courses["story-r1"] = fails("step 3\nerror: the loss is not a number")
    for _ in range(2):
        outcome = cluster.stack.operate("up")
        (failure,) = [one for one in outcome.failures if one.resource == "JobFinished story"]
        assert "AppFailed: the loss is not a number" in failure.reason
        assert "another `run:`" in failure.reason
        assert "Traceback" not in failure.reason
    assert cluster.names(SERVICES) == set()


def test_the_next_run_succeeds_and_its_step_is_served(cluster: Cluster) -> None:
    cluster.operator.job_courses["story-r2"] = cluster.exports("story-r2", '{"step": 200}')
    up = cluster.stack.with_config(config(run="r2")).operate("up")
    assert up.ok, up.failures
    order = [resource for operation, resource in steps(up, workloads=True) if operation != "delete"]
    assert order.index("RayJob story") < order.index("JobFinished story") < order.index("RayService tale")
    assert cluster.names(RUNS) == {"story-r2"}
    assert cluster.served_step() == "200"
    assert set(cluster.stack.operate("preview").changes) == {"same"}


def test_another_run_takes_the_slice_from_the_service_and_gives_it_back(cluster: Cluster) -> None:
    cluster.operator.job_courses["story-r3"] = cluster.exports("story-r3", '{"step": 300}')
    again = cluster.stack.with_config(config(run="r3", steps=7, timeout_s=600))
    planned = {resource for operation, resource in steps(again.operate("preview"), workloads=True)}
    assert {"RayJob story", "RayService tale", "JobFinished story"} <= planned
    up = again.operate("up")
    assert up.ok, up.failures
    (run,) = cluster.stack.plane.every(RUNS)
    # What waits for the next run, this one has.
    assert run["metadata"]["name"] == "story-r3"
    assert '"run":"r3","steps":7,' in run["spec"]["entrypoint"]
    assert run["spec"]["activeDeadlineSeconds"] == 600
    assert cluster.served_step() == "300"
    assert set(again.operate("preview").changes) == {"same"}


def test_a_change_of_a_run_that_exists_waits_for_the_next_and_is_said(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    longer = cluster.stack.with_config(config(run="r3", steps=400, timeout_s=600, retries=2))
    preview = longer.operate("preview")
    assert steps(preview, workloads=True) == []
    said = " ".join(capsys.readouterr().out.split())
    assert "run story-r3 keeps its settings: the change of retries, steps applies to the next run" in said


def test_suspension_alone_goes_through(cluster: Cluster) -> None:
    """A run that is over is not begun again by it, and its model is still served."""
    suspended = cluster.stack.with_config(config(run="r3", steps=7, timeout_s=600, suspend=True))
    assert set(steps(suspended.operate("preview"), workloads=True)) == {("update", "RayJob story")}
    assert suspended.operate("up").ok
    (run,) = cluster.stack.plane.every(RUNS)
    assert run["spec"]["suspend"] is True
    assert cluster.served_step() == "300"
    assert cluster.stack.with_config(config(run="r3", steps=7, timeout_s=600)).operate("up").ok
    (run,) = cluster.stack.plane.every(RUNS)
    assert run["spec"].get("suspend", False) is False


def test_a_run_that_left_no_model_says_so_in_our_words(cluster: Cluster) -> None:
    cluster.operator.job_courses["story-r4"] = completes
    outcome = cluster.stack.with_config(config(run="r4", entrypoint="python my/train.py")).operate("up")
    told = " ".join(failure.reason for failure in outcome.failures)
    assert "run story-r4 left no model" in told, outcome.failures
    assert "Traceback" not in told


def test_up_waits_for_a_run_that_nobody_serves_only_where_it_is_asked_to(cluster: Cluster) -> None:
    def alone(**job: object) -> GkeCheckout:
        return cluster.stack.with_config({**config(**job), "tpu-ray:services": []})

    cluster.operator.job_courses["story-r5"] = runs
    assert alone(run="r5").operate("up").ok
    cluster.operator.job_courses["story-r6"] = fails("Killed", 137)
    outcome = alone(run="r6", wait=True).operate("up")
    assert any("Killed" in failure.reason for failure in outcome.failures), outcome.failures
    cluster.operator.job_courses["story-r7"] = completes
    assert alone(run="r7", wait=True).operate("up").ok


def test_a_schedule_replaces_the_run_and_begins_none(cluster: Cluster) -> None:
    nightly = {**config(run="r7", schedule="0 3 * * *", time_zone="Europe/Berlin"), "tpu-ray:services": []}
    stack = cluster.stack.with_config(nightly)
    up = stack.operate("up")
    assert up.ok, up.failures
    assert cluster.names(RUNS) == set()
    (made,) = stack.plane.every("/apis/batch/v1/namespaces/tpu-ray/cronjobs")
    assert (made["metadata"]["name"], made["spec"]["timeZone"]) == ("story-r7", "Europe/Berlin")
    assert set(stack.operate("preview").changes) == {"same"}
    (entry,) = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["env"][:1]
    assert json.loads(entry["value"])["schedule"] == "story-r7"
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures


def test_a_protected_stack_begins_another_run(tmp_path: Path) -> None:
    protected = config()
    protected["tpu-ray:platform"]["cluster"] = {"deletion_protection": True}
    protected["tpu-ray:services"] = []
    with control_plane(tmp_path / "plane") as plane, kuberay(plane):
        stack = GkeCheckout(tmp_path, "prod", plane, protected)
        assert stack.operate("up").ok
        protected["tpu-ray:jobs"][0]["run"] = "r2"
        up = stack.with_config(protected).operate("up")
        assert up.ok, up.failures
        assert {one["metadata"]["name"] for one in plane.every(RUNS)} == {"story-r2"}
