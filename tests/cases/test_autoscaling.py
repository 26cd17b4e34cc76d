"""Replicas that come and go: who owns their number, and why slices of several hosts do not."""

import json
from typing import Any

import pytest
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

from infra.platforms.gke.cluster import ray_cluster
from infra.platforms.gke.manifests import manifests
from infra.platforms.gke.scaled import with_scaling
from infra.stack import GkePlatform, parse_stack
from tests.cases.autoscalers import Bundles, First, Kube, Second
from tests.cases.stacks import Config, config, mistakes, pool, service
from workloads.spec import ReplicaCount

HEAD = {"2x2": "TPU-v6e-4-head", "4x4": "TPU-v6e-16-head"}


def made(stack: Config) -> list[dict[str, Any]]:
    parsed = parse_stack(stack)
    assert isinstance(parsed.platform, GkePlatform)
    return [dict(manifest) for manifest in manifests(parsed.platform, parsed).values()]


def cluster(topology: str, most: int = 3) -> dict[str, Any]:
    """A RayClusterSpec for 1 to `most` replicas, also on slices for which a stack file may not say that."""
    stack = parse_stack(config(pool(topology=topology, slices=most)))
    assert isinstance(stack.platform, GkePlatform)
    count = ReplicaCount(min=1, max=most, idle_s=60)
    spec: dict[str, Any] = json.loads(
        json.dumps(with_scaling(ray_cluster(stack.platform, stack.pools[0], most), count))
    )
    return spec


def waiting(topology: str) -> Bundles:
    """What `workloads.reserve` asks for while no slice is free, and Ray Serve LLM too."""
    return [{HEAD[topology]: 1, "pool:a": 0.001}]


def test_nothing_but_the_stack_file_says_how_many_slices_there_are() -> None:
    """kuberay#1120, kuberay#4149: what Ray's autoscaler would write, the next `up` would take back."""
    stack = config(pool(slices=3), services=(service(replicas=2),), jobs=({"name": "train", "pool": "a"},))
    for manifest in made(stack):
        spec = manifest["spec"].get("rayClusterConfig") or manifest["spec"]["rayClusterSpec"]
        assert not {"enableInTreeAutoscaling", "autoscalerOptions"} & set(spec)
        for group in spec["workerGroupSpecs"]:
            # One owner, and no room for another: KubeRay holds to the least and the most.
            assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == 1


def test_where_replicas_come_and_go_their_slices_are_the_autoscalers_alone() -> None:
    """kuberay#1120: `replicas` has one owner, and an image that changes does not write it."""
    for image in ("a:1", "a:2"):
        stack = config(pool(topology="2x2", slices=3), services=(service(replicas={"max": 3}),), image=image)
        (manifest,) = made(stack)
        first, *others = manifest["spec"]["rayClusterConfig"]["workerGroupSpecs"]
        assert (first["replicas"], first["minReplicas"], first["maxReplicas"]) == (1, 1, 1)
        for group in others:
            assert "replicas" not in group
            assert (group["minReplicas"], group["maxReplicas"]) == (0, 1)


def test_a_least_that_kuberay_would_not_roll_out_stands_nowhere_in_its_cluster() -> None:
    """kuberay#2331: of a Ray cluster that runs KubeRay changes no least and no most. Serve's least holds its slices."""
    both = []
    for least in (1, 2):
        count = {"min": least, "max": 3}
        (manifest,) = made(config(pool(topology="2x2", slices=3), services=(service(replicas=count),)))
        both.append(manifest["spec"]["rayClusterConfig"])
    assert both[0] == both[1]


@pytest.mark.parametrize(("replicas", "key"), [({"min": 0, "max": 2}, "replicas.min"), ([0, 2], "replicas")], ids=str)
def test_a_service_is_never_without_a_replica(replicas: object, key: str) -> None:
    assert list(mistakes(config(pool(topology="2x2", slices=2), services=(service(replicas=replicas),)))) == [
        f"services[0].{key}"
    ]


@pytest.mark.parametrize("topology", HEAD)
def test_ray_knows_what_a_slice_that_is_not_there_brings(topology: str) -> None:
    """kuberay#1120. What waits for a slice asks for its first host and its pool; Ray reads both from the manifest."""
    types = _derive_autoscaling_config_from_ray_cr(Kube(cluster(topology)).cluster)["available_node_types"]
    found = types["a-s1"]
    assert (found["resources"][HEAD[topology]], found["resources"]["pool:a"]) == (1, 1000)
    assert found["min_workers"] == 0


def test_a_slice_of_one_host_comes_for_a_replica_that_waits_and_goes_when_it_is_idle() -> None:
    kube = Kube(cluster("2x2"))
    second = Second(kube)
    assert kube.replicas == [1, 0, 0]
    wanted = second.wants(waiting("2x2"))
    second.launch(wanted)
    (group,) = wanted
    assert (sum(kube.replicas), len(kube.hosts(group))) == (2, 1)
    second.launch(second.wants(waiting("2x2")))
    assert kube.replicas == [1, 1, 1]
    assert second.wants(waiting("2x2")) == {}, "the range ends here"
    second.terminate(kube.hosts(group))
    assert (sum(kube.replicas), kube.hosts(group), len(kube.pods)) == (2, [], 2)


def test_a_cluster_that_kuberay_writes_anew_keeps_its_slices() -> None:
    """kuberay#4149. Where a larger range adds groups, KubeRay writes the Ray cluster as the RayService has it, without
    `replicas` (modifyRayCluster, 1.5 and 1.6). It ends no pod by itself then, and the autoscaler writes what is there.
    """
    kube = Kube(cluster("2x2"))
    second = Second(kube)
    second.launch({"a-s1": 1})
    before = set(kube.pods)
    kube.groups[1]["replicas"] = 0
    kube.reconcile()
    assert set(kube.pods) == before
    second.launch({"a-s2": 1})
    assert kube.replicas == [1, 1, 1]
    assert before < set(kube.pods)


def test_ray_makes_no_slice_of_several_hosts_for_the_one_host_that_is_asked_for() -> None:
    """kuberay#1120. The second autoscaler counts hosts and divides by those of a slice, rounding down: one host of four
    is no slice, and it does not say so."""
    kube = Kube(cluster("4x4"))
    second = Second(kube)
    wanted = second.wants(waiting("4x4"))
    assert list(wanted.values()) == [1]
    second.launch(wanted)
    assert kube.replicas == [1, 0, 0]


def test_nor_would_it_for_all_hosts_of_a_slice() -> None:
    """It knows no slices: the hosts of one are sought in several groups, and half a slice in two of them is none."""
    hosts: Bundles = [{"CPU": 1, "TPU": 4, "pool:a": 0.001, **({} if n else {HEAD["4x4"]: 1})} for n in range(4)]
    kube = Kube(cluster("4x4"))
    second = Second(kube)
    wanted = second.wants(hosts)
    assert sorted(wanted.values()) == [2, 2]
    second.launch(wanted)
    assert kube.replicas == [1, 0, 0]


@pytest.mark.parametrize(
    ("labelled", "others_s"),
    [(True, 100.0), (False, 58.0)],
    ids=["KubeRay 1.5: one index for all hosts", "KubeRay 1.6: one host idle a moment before the others"],
)
def test_the_first_autoscaler_does_not_give_a_slice_of_several_hosts_back(
    labelled: bool, others_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts what goes in hosts and what stays in slices: four hosts less one are three, cut to the one slice that
    the group may have. So the hosts go, the slice is wanted still, and KubeRay makes it anew, again and again.

    Besides, `autoscalerOptions.version: v1` reaches no Ray from KubeRay 1.5 and 1.6 (DefaultHeadPodTemplate), and
    where nothing is said Ray takes the second.
    """
    kube = Kube(cluster("4x4"), labelled)
    first = First(kube, monkeypatch)
    first.look(waits=waiting("4x4"))
    (group,) = (name for name in ("a-s1", "a-s2") if kube.hosts(name))
    assert (sum(kube.replicas), len(kube.hosts(group)), kube.made) == (2, 4, 2), "it does come"
    one, *others = kube.hosts(group)
    first.look(idle={one: 100.0} | dict.fromkeys(others, others_s))
    assert (sum(kube.replicas), len(kube.hosts(group)), kube.made) == (2, 4, 3), "gone, and made anew"


@pytest.mark.parametrize("engine", ["jax", "vllm"])
def test_so_a_range_is_for_slices_of_one_host(engine: str) -> None:
    def found(topology: str) -> dict[str, Any]:
        replicas = {"min": 1, "max": 2}
        one = service(replicas=replicas, engine=engine, model="hf:meta-llama/Llama-3.1-8B-Instruct")
        problems = mistakes(config(pool(topology=topology, slices=2), services=(one,)))
        return {key: problem for key, problem in problems.items() if "replicas" in key}

    assert found("2x2") == {}
    (problem,) = found("4x4").values()
    assert problem.key == "tpu-ray:services[0].replicas"
    assert "4 hosts" in problem.reason
    assert (problem.allowed, problem.nearest) == (("a whole number",), 2)
