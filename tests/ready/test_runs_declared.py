"""What is declared for jobs on GKE: what of an edit goes through, what waits for a run, what gives its slice up."""

from functools import cache
from typing import Any

import pulumi
import pytest
import yaml

from infra.components.ray_job import FOLLOWED, WRITTEN_ONCE
from infra.platforms.gke.workloads import deploy_workloads
from infra.stack import StackSpec
from tests.cases.declared import Declared, declared
from tests.render.kuberay import VERSIONS, schema
from tests.render.stacks import config
from workloads.spec import ServiceLaunch

LOGIN = '{"apiVersion": "v1"}'
POOL = {"name": "big", "generation": "v6e", "topology": "4x4"}
JOB: dict[str, Any] = {"name": "train", "pool": "big", "run": "r7", "timeout_s": 7200}
SERVED = {"name": "trained", "pool": "big", "model": "job:train"}


def program(_name: str, stack: StackSpec) -> None:
    deploy_workloads(stack, LOGIN, pulumi.ResourceOptions(protect=True))


def workloads(slices: int = 1, services: tuple[dict[str, Any], ...] = (), **job: object) -> dict[str, Declared]:
    """By kind and name, e.g. `RayJob train`."""
    pools = [{**POOL, "slices": {"min": 0, "max": slices}}]
    made = declared(config(pools=pools, services=list(services), jobs=[{**JOB, **job}]), program=program)
    return {f"{one.type.rpartition(':')[2]} {one.name}": one for one in made}


@cache
def of_kuberay(version: str) -> frozenset[str]:
    return frozenset(schema(version, "RayJob")["properties"]["spec"]["properties"])


@pytest.mark.parametrize("version", VERSIONS)
def test_of_a_run_that_exists_only_what_kuberay_follows_is_changed(version: str) -> None:
    """ray-project/kuberay#4140: the rest would be taken without a word and change nothing."""
    made = workloads()["RayJob train"]
    ignored = {path.removeprefix("spec.") for path in made.ignore_changes}
    assert of_kuberay(version) - ignored == set(FOLLOWED)
    assert ignored == set(WRITTEN_ONCE)
    assert set(made.inputs["spec"]) <= {*ignored, *FOLLOWED}


def test_another_run_is_another_name_of_one_resource_and_the_old_one_goes_first() -> None:
    first, second = workloads()["RayJob train"], workloads(run="r8")["RayJob train"]
    assert [one.inputs["metadata"]["name"] for one in (first, second)] == ["train-r7", "train-r8"]
    assert first.delete_before_replace
    # A protected run could not make room for the next one.
    assert not first.protect


def test_suspension_is_written_also_when_it_is_off() -> None:
    """Were it left out, taking `suspend: true` back would leave KubeRay's field as it is."""
    assert workloads()["RayJob train"].inputs["spec"]["suspend"] is False
    assert workloads(suspend=True)["RayJob train"].inputs["spec"]["suspend"] is True


def test_of_a_queued_run_kueue_alone_writes_the_suspension() -> None:
    pools = [{**POOL, "capacity": "queued", "slices": {"min": 0, "max": 1}}]
    made = declared(config(pools=pools, services=[], jobs=[JOB]), program=program)
    (run,) = [one for one in made if one.type == "kubernetes:ray.io/v1:RayJob"]
    assert "suspend" not in run.inputs["spec"]
    assert run.inputs["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tpu-ray"


def test_nobody_waits_for_a_run_unless_it_is_asked_for() -> None:
    assert "JobFinished train" not in workloads()
    wait = workloads(wait=True, retries=2)["JobFinished train"].inputs
    # Each try has its own limit, and KubeRay counts from when it makes the cluster.
    assert wait["timeout_s"] == 3 * 7200 + 300
    assert (wait["run"], wait["hosts"], wait["uid"]) == ("train-r7", 4, "uid-of-train")


def test_a_service_of_a_jobs_model_serves_the_step_that_was_exported() -> None:
    found = workloads(services=(SERVED,), slices=2)
    assert "JobFinished train" in found
    (application,) = yaml.safe_load(found["RayService trained"].inputs["spec"]["serveConfigV2"])["applications"]
    launch = ServiceLaunch.model_validate(application["args"])
    assert launch.model_version == "10"
    assert found["Ready trained"].inputs["mark"] == launch.mark


@pytest.mark.parametrize(("slices", "gives_up"), [(1, True), (2, False)])
def test_a_service_on_the_only_slice_goes_before_the_next_run(slices: int, gives_up: bool) -> None:
    found = workloads(services=(SERVED,), slices=slices)
    replaced_with = [name.rpartition("::")[2] for name in found["RayService trained"].replace_with]
    assert replaced_with == (["train"] if gives_up else [])
    assert found["RayJob train"].inputs["spec"]["ttlSecondsAfterFinished"] == (0 if gives_up else 300)


def test_a_scheduled_job_is_a_cronjob_and_its_account() -> None:
    found = workloads(schedule="0 3 * * *", run="r1")
    own = {f"{kind} train" for kind in ("ServiceAccount", "Role", "RoleBinding", "CronJob")}
    assert set(found) == {*own, "NetworkPolicy job-train"}
    assert all(one.protect for one in found.values())
