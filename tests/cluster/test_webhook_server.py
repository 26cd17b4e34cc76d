"""The webhook's server: many pods at once, pods that never come, what users are told, and being away."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import httpx
import psutil
import pytest

from tests.cluster.worker_pods import RELEASES, Asking, Json, Pods, asked, numbered, patched, ray_cluster, worker_pod
from tests.rig.webhook.registered import registrations
from tests.rig.webhook.server import MUTATE, webhook_server
from tests.rig.webhook.validation import WRONG_HOSTS
from workloads.spec import resolve_slice

V6E = resolve_slice("v6e", "4x4")
LATE_S = 0.03
"""How long a pod takes from its admission until the list has it."""


@pytest.fixture
def pods() -> Pods:
    return Pods()


@pytest.fixture
def webhook(pods: Pods) -> Iterator[Asking]:
    # So long that no pod is taken for failed, however slow the machine is.
    with asked(pods, settle_s=600) as asking:
        yield asking


def place(pod: Json) -> str:
    return str(pod["spec"]["hostname"])


def test_pods_that_are_made_at_once_get_different_places(pods: Pods, webhook: Asking) -> None:
    mutate, begin = pods.mutate, threading.Barrier(8)

    def slowly(pod: Json) -> list[Json]:
        begin.wait()
        found = mutate(pod)
        time.sleep(LATE_S)
        return found

    pods.mutate = slowly
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(pods.make, [worker_pod(V6E) for _ in range(8)]))
    assert sorted(map(place, made)) == [f"tpu-{replica}-{host}" for replica in (0, 1) for host in range(4)]


def test_a_group_does_not_wait_for_a_pod_of_another(pods: Pods, webhook: Asking) -> None:
    webhook.mutate(worker_pod(V6E))
    others = [worker_pod(V6E, group="b"), worker_pod(V6E, cluster="b")]
    elsewhere = worker_pod(V6E)
    elsewhere["metadata"]["namespace"] = "other"
    for pod in (*others, elsewhere):
        assert place(pods.make(pod)).endswith("-0-0")


def test_a_pod_that_never_comes_gives_its_place_back(pods: Pods) -> None:
    with asked(pods, settle_s=0.2) as webhook:
        pods.make(worker_pod(V6E))
        lost = patched(worker_pod(V6E), webhook.mutate(worker_pod(V6E)))
        assert place(lost) == "tpu-0-1"
        assert [place(pods.make(worker_pod(V6E))) for _ in range(3)] == ["tpu-0-1", "tpu-0-2", "tpu-0-3"]


def test_a_pod_that_came_and_went_gives_its_place_back(pods: Pods, webhook: Asking) -> None:
    made = [pods.make(worker_pod(V6E)) for _ in range(3)]
    del pods.there[made[1]["metadata"]["name"]]
    assert [place(pods.make(worker_pod(V6E))) for _ in range(2)] == ["tpu-0-1", "tpu-0-3"]


def test_a_dry_run_takes_no_place(pods: Pods, webhook: Asking) -> None:
    for _ in range(2):
        dry = patched(worker_pod(V6E), webhook.mutate(worker_pod(V6E), dryRun=True))
        assert place(dry) == "tpu-0-0"
    assert place(pods.make(worker_pod(V6E))) == "tpu-0-0"


def test_where_kuberay_numbers_the_pods_are_not_asked_for(pods: Pods, webhook: Asking) -> None:
    pods.make_group("1.6", worker_pod(V6E), hosts=4, replicas=2)
    assert pods.listed == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_pod_that_is_refused_is_told_no_reason(webhook: Asking, release: str) -> None:
    """The API server makes `failed calling webhook ...: Failed to mutate Pod` of it."""
    pod = worker_pod(V6E) if release == "1.5" else numbered(worker_pod(V6E), 0, 0, several=True)
    pod["spec"]["nodeSelector"] = {}
    answer = webhook.review(MUTATE, pod)
    assert (answer.status_code, answer.text.strip()) == (403, "Failed to mutate Pod")
    assert webhook.server.said == ["Ray Pod created by KubeRay missing TPU topology nodeSelector"]


def test_a_ray_cluster_with_the_wrong_number_of_hosts_is_told_so(webhook: Asking) -> None:
    response = webhook.validate(ray_cluster(worker_pod(V6E), 2)).raise_for_status().json()["response"]
    assert response["allowed"] is False
    assert response["status"]["message"] == WRONG_HOSTS
    right = webhook.validate(ray_cluster(worker_pod(V6E), 4)).raise_for_status().json()["response"]
    assert right == {"uid": response["uid"], "allowed": True}


def test_a_ray_cluster_without_a_topology_is_told_no_reason(webhook: Asking) -> None:
    pod = worker_pod(V6E)
    del pod["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    answer = webhook.validate(ray_cluster(pod, 4))
    assert (answer.status_code, answer.text.strip()) == (403, "Failed to validate RayCluster")
    assert webhook.server.said == ["worker group tpu has no nodeSelector cloud.google.com/gke-tpu-topology"]


def test_parts_are_left_out_and_come_back(pods: Pods, webhook: Asking) -> None:
    webhook.server.without = frozenset({"affinity"})
    without = pods.make(worker_pod(V6E))
    assert "affinity" not in without["spec"]
    assert without["spec"]["hostname"] == "tpu-0-0"
    webhook.server.without = frozenset()
    assert "affinity" in pods.make(worker_pod(V6E))["spec"]
    with pytest.raises(ValueError, match=r"the webhook writes no afinity; it writes .*affinity"):
        webhook.server.without = frozenset({"afinity"})


def test_while_it_is_away_connections_are_refused(pods: Pods, webhook: Asking) -> None:
    assert place(pods.make(worker_pod(V6E))) == "tpu-0-0"
    with webhook.server.away():
        for _ in range(2):
            with pytest.raises(httpx.ConnectError, match="refused"):
                pods.make(worker_pod(V6E))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((webhook.server.address, webhook.server.port))
    assert place(pods.make(worker_pod(V6E))) == "tpu-0-1"


def test_a_client_that_says_nothing_keeps_nobody_waiting(pods: Pods, webhook: Asking) -> None:
    with socket.create_connection((webhook.server.address, webhook.server.port)):
        assert place(pods.make(worker_pod(V6E))) == "tpu-0-0"


def test_only_its_own_certificate_is_trusted(pods: Pods) -> None:
    with webhook_server(pods.every) as (server, _), webhook_server(pods.every) as (_, other):
        trust = ssl.create_default_context(cafile=other)
        with (
            httpx.Client(verify=trust, trust_env=False) as client,
            pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.get(f"https://{server.address}:{server.port}/")


def test_an_error_of_its_own_is_raised_at_the_end(pods: Pods) -> None:
    webhook = asked(pods)
    asking = webhook.__enter__()
    asking.server.errors.append(KeyError("a mistake"))
    with pytest.raises(KeyError, match="a mistake"):
        webhook.__exit__(None, None, None)


def test_a_request_that_it_fails_over_is_an_error_of_its_own(
    pods: Pods, webhook: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook.server, "_every", lambda path: pods.there[path])
    with pytest.raises(httpx.RemoteProtocolError):
        pods.make(worker_pod(V6E))
    webhook.server.stop()
    (error,) = webhook.server.errors
    assert isinstance(error, KeyError)
    webhook.server.errors.clear()


def test_nothing_is_left_when_it_ends(pods: Pods) -> None:
    threads = set(threading.enumerate())
    with asked(pods) as webhook:
        pods.make(worker_pod(V6E))
        port = webhook.server.port
        assert set(threading.enumerate()) - threads
    assert set(threading.enumerate()) == threads
    assert port not in {one.laddr.port for one in psutil.Process().net_connections("tcp") if one.status == "LISTEN"}


def test_it_is_registered_for_what_it_looks_at(webhook: Asking) -> None:
    """The names of the groups are Kubernetes'; a webhook's name has three parts at least."""
    found = registrations(webhook.server, b"certificate", "mark")
    assert set(found) == {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    what = {}
    for body in found.values():
        ray, probe = body["webhooks"]
        assert all(len(one["name"].split(".")) == 3 for one in (ray, probe))
        assert probe["objectSelector"] == {"matchLabels": {"ray-tpu-webhook/probe": "mark"}}
        assert ray["failurePolicy"] == "Fail"
        (rule,) = ray["rules"]
        what[ray["clientConfig"]["url"].rpartition("/")[2]] = (rule["resources"], rule["operations"])
    assert what == {"mutate": (["pods"], ["CREATE"]), "validate": (["rayclusters"], ["CREATE"])}


def test_the_pod_that_was_asked_about_is_not_changed() -> None:
    pods, pod = Pods(), worker_pod(V6E)
    before = deepcopy(pod)
    pods.make(pod)
    assert pod == before
