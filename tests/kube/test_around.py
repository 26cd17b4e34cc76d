"""What stands around the Ray clusters on a real API server: taken field by field, and waited for until it is gone."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.gke.gone import wait_until_gone
from infra.platforms.gke.kubernetes_api import Kubernetes
from tests.cases.declared import declared
from tests.cases.stacks import config, pool, service
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.parts import KUBERAY

pytestmark = pytest.mark.rig

REDIS = {"redis_address": "redis:6379", "password_secret": "ray-redis"}
STACK = config(
    pool(slices=3),
    services=(service("chat", replicas=2),),
    jobs=({"name": "train", "pool": "a"},),
    namespace="ml",
    ray={"services_first": True, "gcs_fault_tolerance": REDIS},
)
PATHS = {
    "RayService": "/apis/ray.io/v1/namespaces/ml/rayservices",
    "RayJob": "/apis/ray.io/v1/namespaces/ml/rayjobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/ml/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/ml/poddisruptionbudgets",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
CLUSTERS = "/apis/ray.io/v1/namespaces/ml/rayclusters"
FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"


@pytest.fixture(scope="module", params=KUBERAY)
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("around") / "plane", request.param) as running:
        running.take_kuberay("ml")
        yield running


def make(client: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
    while True:
        answer = client.post(path, params={"fieldValidation": "Strict"}, json=body)
        # A definition is there a little before its objects are taken.
        if answer.status_code != httpx.codes.NOT_FOUND:
            return answer


def test_every_field_is_known_and_legal(plane: ControlPlane) -> None:
    kinds = set()
    with plane.client() as client:
        for one in declared(STACK):
            kind = one.type.rpartition(":")[2]
            if one.type.startswith("kubernetes:") and kind in PATHS:
                # The engine's numbers have a fraction, which a provider in Go writes only where it is one.
                text = json.dumps({key: value for key, value in one.inputs.items() if value is not None})
                body = json.loads(text, parse_float=lambda number: int(float(number)))
                answer = make(client, PATHS[kind], body)
                assert answer.is_success, (kind, answer.text)
                assert answer.json()["metadata"]["name"] == one.inputs["metadata"]["name"]
                kinds.add(kind)
    assert kinds == set(PATHS)


def test_a_service_is_gone_when_its_ray_clusters_are(plane: ControlPlane) -> None:
    """kuberay#3388: what the clean-up in Redis needs stays until it is done."""
    kubernetes = Kubernetes(json.dumps(plane.kubeconfig))
    group = next(one for one in declared(STACK) if one.type.endswith(":RayService")).inputs["spec"]["rayClusterConfig"]
    labels = {"ray.io/originated-from-cr-name": "chat", "ray.io/originated-from-crd": "RayService"}
    with plane.client() as client:
        for name, of in (("chat-x7k2p", "chat"), ("other-x7k2p", "other")):
            metadata = {
                "name": name,
                "labels": {**labels, "ray.io/originated-from-cr-name": of},
                "finalizers": [FINALIZER],
            }
            body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": group}
            assert make(client, CLUSTERS, body).is_success
        assert client.delete(f"{CLUSTERS}/chat-x7k2p").is_success
        with pytest.raises(PlatformError) as caught:
            wait_until_gone(kubernetes, "ml", "chat", timeout_s=0)
        assert FINALIZER in str(caught.value)
        assert "platform.ray.gcs_fault_tolerance" in str(caught.value)
        ended = threading.Event()

        def wait() -> None:
            wait_until_gone(kubernetes, "ml", "chat", timeout_s=60)
            ended.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not ended.is_set()
        done = client.patch(
            f"{CLUSTERS}/chat-x7k2p",
            json={"metadata": {"finalizers": None}},
            headers={"content-type": "application/merge-patch+json"},
        )
        assert done.is_success, done.text
        waiting.join(timeout=60)
        assert ended.is_set()
    kubernetes.close()
