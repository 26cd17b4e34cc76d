"""What a TPU worker gets from the Ray TPU webhook, row by row as it was seen with KubeRay 1.5.1 and 1.6.0."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.worker_pods import RELEASES, TOLERATION, Pods, asked, env, numbered, ray_cluster, worker_pod
from tests.rig.webhook.mutation import PARTS, headless_service, mutated
from tests.rig.webhook.validation import WRONG_HOSTS, Unreadable, check_hosts
from tests.rig.webhook.worker import Refusal, hosts_of
from workloads.spec import catalogue, resolve_slice

Json = dict[str, Any]
V6E = resolve_slice("v6e", "4x4")
V5E_ONE_HOST = resolve_slice("v5e", "2x4", "ct5lp-hightpu-8t")
V5E_TWO_HOSTS = resolve_slice("v5e", "2x4", "ct5lp-hightpu-4t")
V4 = resolve_slice("v4", "2x2x2")
V7X = resolve_slice("v7x", "2x2x2")
METRICS = {
    "TPU_DEVICE_PLUGIN_HOST_IP": "status.hostIP",
    "TPU_DEVICE_PLUGIN_ADDR": "$(TPU_DEVICE_PLUGIN_HOST_IP):2112",
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_POOL = "cloud.google.com/gke-nodepool"


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["pure", "https"])
def pods(request: pytest.FixtureRequest) -> Iterator[Pods]:
    """No pods yet, and a webhook that is called or asked."""
    found = Pods()
    if request.param == "pure":
        yield found
    else:
        with asked(found):
            yield found


def own_env(pod: Json) -> dict[str, str]:
    """Without what the pod came with."""
    return {name: value for name, value in env(pod).items() if name != "JAX_PLATFORMS"}


def host_names(cluster: str, replica: int, hosts: int) -> str:
    return ",".join(f"tpu-{replica}-{host}.{cluster}-headless" for host in range(hosts))


def matching(term: Json) -> dict[str, list[tuple[str, list[str]]]]:
    """The expressions of an affinity's term over node pools, by label."""
    assert term["topologyKey"] == NODE_POOL
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for one in term["labelSelector"]["matchExpressions"]:
        found.setdefault(one["key"], []).append((one["operator"], one.get("values", [])))
    return found


def test_four_hosts_and_two_replicas(pods: Pods, release: str) -> None:
    made = pods.make_group(release, worker_pod(V6E), hosts=4, replicas=2)
    assert len(made) == 8
    for number, pod in enumerate(made):
        replica, host = divmod(number, 4)
        assert pod["spec"]["hostname"] == f"tpu-{replica}-{host}"
        assert pod["spec"]["subdomain"] == "a-headless"
        assert own_env(pod) == {
            "TPU_NAME": f"tpu-{replica}",
            "TPU_WORKER_ID": str(host),
            "TPU_WORKER_HOSTNAMES": host_names("a", replica, 4),
            **METRICS,
        }
        labels = pod["metadata"]["labels"]
        if release == "1.5":
            assert labels["replicaIndex"] == f"tpu-{replica}"
        else:
            assert "replicaIndex" not in labels
            assert labels["ray.io/worker-group-replica-index"] == str(replica)
            assert labels["ray.io/replica-host-index"] == str(host)


def test_a_replica_has_its_node_pool_for_itself(pods: Pods, release: str) -> None:
    pod = pods.make_group(release, worker_pod(V6E), hosts=4, replicas=2)[-1]
    key, own = ("replicaIndex", "tpu-1") if release == "1.5" else ("ray.io/worker-group-replica-name", "tpu-zzq4m")
    assert set(pod["spec"]["affinity"]) == {"podAffinity", "podAntiAffinity"}
    (together,) = pod["spec"]["affinity"]["podAffinity"][REQUIRED]
    assert matching(together) == {key: [("In", [own])], "ray.io/cluster": [("In", ["a"])]}
    sisters, strangers = pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert matching(sisters) == {key: [("Exists", []), ("NotIn", [own])], "ray.io/cluster": [("In", ["a"])]}
    assert matching(strangers) == {"ray.io/cluster": [("Exists", []), ("NotIn", ["a"])]}


def test_the_toleration_and_the_init_container_are_not_its_work(pods: Pods, release: str) -> None:
    pod = worker_pod(V6E)
    for made in pods.make_group(release, pod, hosts=4):
        assert made["spec"]["tolerations"] == [TOLERATION]
        assert made["spec"]["initContainers"] == pod["spec"]["initContainers"]


def test_one_host_of_eight_chips(pods: Pods, release: str) -> None:
    (made,) = pods.make_group(release, worker_pod(V5E_ONE_HOST), hosts=1)
    assert own_env(made) == {"TPU_NAME": "tpu-0", "TPU_WORKER_ID": "0", **METRICS}
    assert not {"hostname", "subdomain", "affinity"} & set(made["spec"])
    labels = made["metadata"]["labels"]
    assert labels["replicaIndex"] == "tpu-0"
    assert labels.get("ray.io/worker-group-replica-index") == (None if release == "1.5" else "0")


def test_two_hosts_of_four_chips_are_not_kept_off_a_host_of_eight(pods: Pods, release: str) -> None:
    """The selectors of both kinds of 2x4 pool are the same, and the webhook adds none."""
    made = pods.make_group(release, worker_pod(V5E_TWO_HOSTS), hosts=2)
    assert [env(pod)["TPU_WORKER_HOSTNAMES"] for pod in made] == [host_names("a", 0, 2)] * 2
    alone = worker_pod(V5E_ONE_HOST)["spec"]["nodeSelector"]
    assert [pod["spec"]["nodeSelector"] for pod in made] == [alone, alone]


def test_two_hosts_of_v4(pods: Pods, release: str) -> None:
    made = pods.make_group(release, worker_pod(V4, cluster="d"), hosts=2)
    assert [pod["spec"]["hostname"] for pod in made] == ["tpu-0-0", "tpu-0-1"]
    for host, pod in enumerate(made):
        names = {"TPU_WORKER_HOSTNAMES": host_names("d", 0, 2)}
        assert own_env(pod) == {"TPU_NAME": "tpu-0", "TPU_WORKER_ID": str(host), **names, **METRICS}


def test_two_hosts_of_v7x_have_process_addresses_too(pods: Pods, release: str) -> None:
    made = pods.make_group(release, worker_pod(V7X, cluster="e"), hosts=2)
    for host, pod in enumerate(made):
        assert own_env(pod) == {
            "TPU_NAME": "tpu-0",
            "TPU_WORKER_ID": str(host),
            "TPU_WORKER_HOSTNAMES": host_names("e", 0, 2),
            "TPU_PROCESS_ADDRESSES": "tpu-0-0.e-headless:8471,tpu-0-1.e-headless:8471",
            "TPU_PROCESS_PORT": "8471",
            **METRICS,
        }


def test_two_replicas_that_are_one_multi_slice(pods: Pods, release: str) -> None:
    pod = worker_pod(V6E, cluster="f", MEGASCALE_NUM_SLICES="2")
    made = pods.make_group(release, pod, hosts=4, replicas=2)
    assert [env(pod)["MEGASCALE_SLICE_ID"] for pod in made] == ["0"] * 4 + ["1"] * 4
    for pod in made:
        assert env(pod)["MEGASCALE_NUM_SLICES"] == "2"
        assert env(pod)["MEGASCALE_COORDINATOR_ADDRESS"] == "tpu-0-0.f-headless"
        assert env(pod)["MEGASCALE_PORT"] == "8081"


def test_a_long_name_leads_to_a_service_that_is_not_there(pods: Pods, release: str) -> None:
    name = "the-longest-name-that-a-ray-service-may-have-47"
    assert len(name) == 47
    made = pods.make_group(release, worker_pod(V6E, cluster=name), hosts=4)
    service = f"{name[-41:]}-headless"
    assert service != f"{name}-headless"
    for pod in made:
        assert pod["spec"]["subdomain"] == service
        assert env(pod)["TPU_WORKER_HOSTNAMES"].split(",") == [f"tpu-0-{host}.{service}" for host in range(4)]


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("x" * 41, "x" * 41 + "-headless"),
        ("y" + "x" * 41, "x" * 41 + "-headless"),
        ("ab-" + "x" * 40, "r" + "x" * 40 + "-headless"),
        ("ab7" + "x" * 40, "r" + "x" * 40 + "-headless"),
    ],
)
def test_a_name_of_41_characters_is_the_longest_that_stays(name: str, service: str) -> None:
    assert headless_service(name) == service


def test_too_few_hosts_are_refused() -> None:
    for hosts in (0, 1, 2, 5):
        with pytest.raises(Refusal, match=f"^{WRONG_HOSTS}$"):
            check_hosts(ray_cluster(worker_pod(V6E), hosts))
    check_hosts(ray_cluster(worker_pod(V6E), 4))


@pytest.mark.parametrize("topology", [None, "", "4xfour"])
def test_a_ray_cluster_without_a_topology_is_more_than_it_can_read(topology: str | None) -> None:
    pod = worker_pod(V6E)
    pod["spec"]["nodeSelector"] = {} if topology is None else {"cloud.google.com/gke-tpu-topology": topology}
    with pytest.raises(Unreadable):
        check_hosts(ray_cluster(pod, 4))


def test_a_group_without_chips_is_not_looked_at() -> None:
    pod = worker_pod(V6E)
    del pod["spec"]["containers"][0]["resources"], pod["spec"]["nodeSelector"]
    check_hosts(ray_cluster(pod, 3))


def test_an_affinity_of_the_users_is_lost(pods: Pods, release: str) -> None:
    pod = worker_pod(V6E)
    pod["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}
    made = pods.make_group(release, pod, hosts=4)
    assert ["nodeAffinity" in one["spec"]["affinity"] for one in made] == [False] * 4
    assert all("podAffinity" in one["spec"]["affinity"] for one in made)


def test_a_slice_of_one_host_keeps_an_affinity(pods: Pods, release: str) -> None:
    pod = worker_pod(V5E_ONE_HOST)
    pod["spec"]["affinity"] = {"nodeAffinity": {}}
    (made,) = pods.make_group(release, pod, hosts=1)
    assert made["spec"]["affinity"] == {"nodeAffinity": {}}


def test_pods_without_chips_or_of_others_are_left_as_they_are(pods: Pods) -> None:
    head, other = worker_pod(V6E), worker_pod(V6E)
    del head["spec"]["containers"][0]["resources"]
    del other["metadata"]["labels"]["app.kubernetes.io/name"]
    assert pods.mutate(head) == []
    assert pods.mutate(other) == []


def test_only_containers_with_chips_get_anything(pods: Pods, release: str) -> None:
    pod = worker_pod(V6E)
    pod["spec"]["containers"].insert(0, {"name": "sidecar", "image": "example.org/none"})
    made = pods.make_group(release, pod, hosts=4)
    assert [env(one, 0) for one in made] == [{}] * 4
    assert [env(one, 1)["TPU_WORKER_ID"] for one in made] == ["0", "1", "2", "3"]


def test_what_the_user_set_stays_but_for_defaults(pods: Pods, release: str) -> None:
    own = {"TPU_NAME": "mine", "MEGASCALE_NUM_SLICES": "1", "MEGASCALE_PORT": "9915"}
    pod = worker_pod(V6E, TPU_WORKER_ID="0", TPU_WORKER_HOSTNAMES="localhost", **own)
    made = pods.make_group(release, pod, hosts=4)
    for host, one in enumerate(made):
        assert own.items() <= env(one).items()
        assert env(one)["TPU_WORKER_ID"] == str(host)
        assert env(one)["TPU_WORKER_HOSTNAMES"] == host_names("a", 0, 4)
        names = [variable["name"] for variable in one["spec"]["containers"][0]["env"]]
        assert len(names) == len(set(names))


def test_two_containers_of_a_v7x_host_are_two_processes(pods: Pods, release: str) -> None:
    pod = worker_pod(V7X)
    (container,) = pod["spec"]["containers"]
    container["resources"] = {"limits": {"google.com/tpu": "2"}}
    pod["spec"]["containers"].append({**container, "name": "second", "env": []})
    made = pods.make_group(release, pod, hosts=2)
    ids = [[env(one, number)["TPU_WORKER_ID"] for number in (0, 1)] for one in made]
    assert ids == [["0", "1"], ["2", "3"]]
    assert [env(made[0], number)["TPU_PROCESS_PORT"] for number in (0, 1)] == ["8471", "8472"]
    every = [f"tpu-0-{host}.a-headless:{port}" for host in (0, 1) for port in (8471, 8472)]
    assert env(made[1], 1)["TPU_PROCESS_ADDRESSES"].split(",") == every


@pytest.mark.parametrize("gone", ["deleted", "being deleted"])
def test_a_pod_that_is_made_again_is_the_host_that_is_missing(pods: Pods, gone: str) -> None:
    made = pods.make_group("1.5", worker_pod(V6E), hosts=4, replicas=2)
    for place in (2, 5):
        name = made[place]["metadata"]["name"]
        if gone == "deleted":
            del pods.there[name]
        else:
            pods.there[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    again = [pods.make(worker_pod(V6E)) for _ in range(3)]
    assert [one["spec"]["hostname"] for one in again] == ["tpu-0-2", "tpu-1-1", "tpu-2-0"]
    assert [one["metadata"]["labels"]["replicaIndex"] for one in again] == ["tpu-0", "tpu-1", "tpu-2"]


def test_groups_and_clusters_are_numbered_each_for_itself(pods: Pods) -> None:
    ours = worker_pod(V6E)
    others = [worker_pod(V6E, group="tpu-2"), worker_pod(V6E, cluster="b")]
    for other in others:
        pods.make_group("1.5", other, hosts=4)
    assert pods.make(ours)["spec"]["hostname"] == "tpu-0-0"
    assert pods.make(others[0])["spec"]["hostname"] == "tpu-2-1-0"


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (("metadata", "labels", "ray.io/cluster"), "Ray Pod created by KubeRay missing RayCluster label"),
        (("metadata", "labels", "ray.io/group"), "Ray Pod created by KubeRay missing Group label"),
        (
            ("spec", "nodeSelector", "cloud.google.com/gke-tpu-topology"),
            "Ray Pod created by KubeRay missing TPU topology nodeSelector",
        ),
    ],
)
def test_a_pod_that_lacks_something_is_refused(missing: tuple[str, str, str], reason: str, release: str) -> None:
    pod = worker_pod(V6E) if release == "1.5" else numbered(worker_pod(V6E), 0, 0, several=True)
    first, second, key = missing
    del pod[first][second][key]
    with pytest.raises(Refusal, match=f"^{reason}$"):
        mutated(pod, [])


def test_peers_that_contradict_each_other_are_refused() -> None:
    pods = Pods()
    first, _ = (pods.make(worker_pod(V6E)) for _ in range(2))
    container = first["spec"]["containers"][0]
    container["env"] = [one | {"value": "1"} if one["name"] == "TPU_WORKER_ID" else one for one in container["env"]]
    with pytest.raises(Refusal, match=r"^Identical TPU_WORKER_ID assigned to multiple TPU workers in slice$"):
        pods.make(worker_pod(V6E))
    container["env"] = [one for one in container["env"] if one["name"] != "TPU_WORKER_ID"]
    with pytest.raises(Refusal, match=r"^existing TPU worker missing TPU_WORKER_ID$"):
        pods.make(worker_pod(V6E))


@pytest.mark.parametrize("part", sorted(PARTS))
def test_each_part_can_be_left_out(part: str) -> None:
    pod = numbered(worker_pod(V7X, MEGASCALE_NUM_SLICES="2"), 1, 1, several=True)
    if part == "replicaIndex":
        del pod["metadata"]["labels"]["ray.io/worker-group-replica-name"]
    whole, less = mutated(pod, []), mutated(pod, [], without={part})
    left = [one for one in whole if one not in less]
    assert [one for one in less if one not in whole] == []
    assert [one["path"].rpartition("/")[2] for one in left] == [part] or [one["value"]["name"] for one in left] == [
        part
    ]


def test_it_counts_hosts_as_the_catalogue_does() -> None:
    for found in catalogue():
        assert hosts_of(found.topology, found.chips_per_host) == found.hosts
