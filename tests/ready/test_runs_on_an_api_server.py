"""The wait for a RayJob on a real API server; KubeRay is a double."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.gke.job_finished import JobFinishedProvider
from infra.platforms.gke.job_manifest import ray_job
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.run_look import WantedRun
from infra.platforms.gke.run_waiting import ExpectedRun, wait_for_run
from infra.stack import GkePlatform, parse_stack
from tests.render.stacks import config
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.kuberay import RAY, KubeRay, kuberay
from tests.rig.kube.kuberay_jobs import completes, fails, runs, too_late

pytestmark = pytest.mark.rig

RUNS = f"{RAY}/namespaces/ml/rayjobs"
EXPECTED = ExpectedRun(WantedRun("train-r1", "ml", hosts=4), "1 v6e 4x4 slice of pool `big`", 300)
Json = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("runs") / "plane") as running:
        running.take_kuberay("ml")
        yield running


@pytest.fixture(scope="module")
def operator(plane: ControlPlane) -> Iterator[KubeRay]:
    with kuberay(plane) as running:
        yield running


@pytest.fixture
def kubernetes(plane: ControlPlane) -> Iterator[Kubernetes]:
    found = Kubernetes(json.dumps(plane.kubeconfig))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def no_run(plane: ControlPlane, operator: KubeRay) -> Iterator[None]:
    yield
    operator.job_courses.clear()
    with plane.client() as client:
        assert client.delete(f"{RUNS}/train-r1").status_code in (200, 404)
        while client.get(f"{RUNS}/train-r1").status_code != httpx.codes.NOT_FOUND:
            pass


def apply(plane: ControlPlane, **values: object) -> Json:
    """The RayJob of a stack with these keys of the job, as Pulumi applies it: server-side."""
    pools = [{"name": "big", "generation": "v6e", "topology": "4x4"}]
    stack = parse_stack(config(pools=pools, services=[], jobs=[{"name": "train", "pool": "big", **values}]))
    assert isinstance(stack.platform, GkePlatform)
    with plane.client() as client:
        answer: httpx.Response | None = None
        # The definition is there a little before its objects are taken.
        while answer is None or answer.status_code == httpx.codes.NOT_FOUND:
            answer = client.patch(
                f"{RUNS}/train-r1",
                params={"fieldManager": "pulumi-kubernetes", "force": "true", "fieldValidation": "Strict"},
                content=json.dumps(ray_job(stack.platform, stack, stack.jobs[0])),
                headers={"content-type": "application/apply-patch+yaml"},
            )
    assert answer.is_success, answer.text
    made: Json = answer.json()
    return made


def test_a_run_that_succeeds_is_waited_for(plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes) -> None:
    looks = iter([runs, runs])
    operator.job_courses["train-r1"] = lambda *given: next(looks, completes)(*given)
    apply(plane)
    wait_for_run(kubernetes, EXPECTED, print)
    assert next(looks, None) is None


def test_a_run_that_failed_fails_every_wait_with_its_drivers_words(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    operator.job_courses["train-r1"] = fails("step 3\nerror: the loss is not a number")
    apply(plane)
    for _ in range(2):
        with pytest.raises(PlatformError) as error:
            wait_for_run(kubernetes, EXPECTED, print)
        assert error.value.found == "AppFailed: the loss is not a number"
        assert "another `run:`" in error.value.next_step


def test_a_run_that_took_too_long_fails_with_kuberays_words(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    operator.job_courses["train-r1"] = too_late
    apply(plane, timeout_s=600)
    with pytest.raises(PlatformError, match=r"DeadlineExceeded: .* ActiveDeadlineSeconds: 600"):
        wait_for_run(kubernetes, EXPECTED, print)


def test_a_wait_has_a_deadline_of_its_own(plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes) -> None:
    operator.job_courses["train-r1"] = runs
    apply(plane)
    with pytest.raises(PlatformError) as error:
        wait_for_run(kubernetes, ExpectedRun(EXPECTED.wanted, EXPECTED.slices, timeout_s=0), print)
    assert error.value.found in (
        "Ray says RUNNING",
        "KubeRay has not looked at the RayJob: is the Ray operator add-on of the cluster on?",
    )
    assert error.value.wanted == "the run ends with success, on 1 v6e 4x4 slice of pool `big`"


def test_a_suspended_run_is_not_waited_for_until_it_begins_again(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    operator.job_courses["train-r1"] = completes
    apply(plane, suspend=True)
    with pytest.raises(PlatformError, match="it is suspended"):
        wait_for_run(kubernetes, EXPECTED, print)
    apply(plane, suspend=False)
    wait_for_run(kubernetes, EXPECTED, print)


def test_what_has_succeeded_once_is_not_asked_again(plane: ControlPlane, operator: KubeRay) -> None:
    operator.job_courses["train-r1"] = completes
    made = apply(plane)
    props: Json = {
        "login": json.dumps(plane.kubeconfig),
        "context": None,
        "run": "train-r1",
        "namespace": "ml",
        "hosts": 4,
        "slices": EXPECTED.slices,
        "timeout_s": 300,
        "uid": made["metadata"]["uid"],
        "export": "gs://my-bucket/runs/train-r1/export",
        "exported": None,
    }
    provider = JobFinishedProvider()
    finished = provider.create(props).outs
    assert finished is not None
    assert finished["exported"] == props["export"]
    with plane.client() as client:
        assert client.delete(f"{RUNS}/train-r1").is_success
    assert not provider.diff("ml/train-r1", finished, props).changes
    assert provider.diff("ml/train-r1", finished, {**props, "uid": "another"}).changes
    # A wait that failed leaves the state as it was before it.
    assert provider.diff("ml/train-r1", {**props, "run": "train-r0"}, props).changes
