"""The webhook where a real API server asks it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.cluster.worker_pods import TOLERATION, env, numbered, ray_cluster, worker_pod
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.parts import KUBERAY
from tests.rig.webhook.registered import webhook
from tests.rig.webhook.server import WebhookServer
from tests.rig.webhook.validation import WRONG_HOSTS
from workloads.spec import resolve_slice

pytestmark = pytest.mark.rig

Json = dict[str, Any]
V6E = resolve_slice("v6e", "4x4")
PODS = "/api/v1/namespaces/ml/pods"
CLUSTERS = "/apis/ray.io/v1/namespaces/ml/rayclusters"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("webhook") / "plane", KUBERAY[0], webhooks=True) as running:
        running.take_kuberay("ml")
        yield running


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> Iterator[WebhookServer]:
    with webhook(plane) as running:
        yield running


@pytest.fixture
def client(plane: ControlPlane, server: WebhookServer) -> Iterator[httpx.Client]:
    with plane.client() as one:
        yield one
        one.delete(PODS, params={"gracePeriodSeconds": "0"}).raise_for_status()


def make_cluster(client: httpx.Client, cluster: Json) -> httpx.Response:
    """A definition is there a little before its objects are taken."""
    while (answer := client.post(CLUSTERS, params={"dryRun": "All"}, json=cluster)).status_code == 404:
        pass
    return answer


def test_workers_get_their_places_and_the_toleration(plane: ControlPlane, client: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: client.post(PODS, json=worker_pod(V6E)), range(8)))
    assert [answer.status_code for answer in made] == [201] * 8, [answer.text for answer in made]
    found = plane.every(PODS)
    places = {pod["spec"]["hostname"]: pod for pod in found}
    assert sorted(places) == [f"tpu-{replica}-{host}" for replica in (0, 1) for host in range(4)]
    for place, pod in places.items():
        replica, _, host = place.rpartition("-")
        assert pod["metadata"]["labels"]["replicaIndex"] == replica
        assert (env(pod)["TPU_NAME"], env(pod)["TPU_WORKER_ID"]) == (replica, host)
        assert pod["spec"]["subdomain"] == "a-headless"
        assert TOLERATION in pod["spec"]["tolerations"]
        assert "podAntiAffinity" in pod["spec"]["affinity"]
    client.delete(f"{PODS}/{places['tpu-1-2']['metadata']['name']}", params={"gracePeriodSeconds": "0"})
    again = client.post(PODS, json=worker_pod(V6E)).raise_for_status().json()
    assert again["spec"]["hostname"] == "tpu-1-2"


def test_workers_that_kuberay_numbers(client: httpx.Client) -> None:
    pod = numbered(worker_pod(V6E), 1, 3, several=True)
    made = client.post(PODS, json=pod).raise_for_status().json()
    assert made["spec"]["hostname"] == "tpu-1-3"
    assert "replicaIndex" not in made["metadata"]["labels"]


def test_what_users_are_told(client: httpx.Client) -> None:
    wrong = make_cluster(client, ray_cluster(worker_pod(V6E), 2))
    assert not wrong.is_success
    assert "denied the request" in wrong.json()["message"]
    assert wrong.json()["message"].endswith(WRONG_HOSTS)
    pod = worker_pod(V6E)
    del pod["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    opaque = make_cluster(client, ray_cluster(pod, 4))
    assert opaque.status_code == 500
    message = opaque.json()["message"]
    assert message.startswith("Internal error occurred: failed calling webhook")
    assert message.endswith("Failed to validate RayCluster")
    assert make_cluster(client, ray_cluster(worker_pod(V6E), 4)).is_success
    refused = client.post(PODS, json=pod)
    assert refused.status_code == 500
    assert refused.json()["message"].endswith("Failed to mutate Pod")


def test_no_worker_is_made_while_it_is_away(client: httpx.Client, server: WebhookServer) -> None:
    head = worker_pod(V6E)
    del head["metadata"]["labels"]["app.kubernetes.io/name"]
    with server.away():
        refused = client.post(PODS, json=worker_pod(V6E))
        assert refused.status_code == 500
        assert "connection refused" in refused.json()["message"]
        assert client.post(PODS, json=head).is_success
    assert client.post(PODS, json=worker_pod(V6E)).is_success


def test_a_part_that_is_left_out(client: httpx.Client, server: WebhookServer) -> None:
    server.without = frozenset({"affinity"})
    try:
        made = client.post(PODS, json=worker_pod(V6E)).raise_for_status().json()
    finally:
        server.without = frozenset()
    assert made["spec"]["hostname"] == "tpu-0-0"
    assert "affinity" not in made["spec"]
