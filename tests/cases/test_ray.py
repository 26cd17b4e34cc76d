"""Ray clusters that waited for what is not there, or kept what nobody uses any more."""

import json
from typing import Any

import pytest

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import declared
from tests.cases.stacks import Config, config, mistakes, pool, service
from workloads.spec import JobSpec


def made(stack: Config) -> dict[str, dict[str, Any]]:
    """The manifests of a stack, by file."""
    parsed = parse_stack(stack)
    assert isinstance(parsed.platform, GkePlatform)
    return {name: dict(manifest) for name, manifest in manifests(parsed.platform, parsed).items()}


def job(**keys: object) -> dict[str, object]:
    return {"name": "train", "pool": "a", **keys}


@pytest.mark.parametrize("topology", ["2x2", "4x4"])
def test_no_pod_carries_a_place_in_a_slice_of_its_own(topology: str) -> None:
    """ray#62893: a value from the pod outlives the slice that it was true for, and JAX waits for it for ever."""
    found = made(config(pool(topology=topology, slices=2), services=(service(),), jobs=(job(),)))
    text = json.dumps(found)
    assert found
    for word in ("MEGASCALE_", "TPU_WORKER_", "TPU_NAME"):
        assert word not in text


def test_a_finished_run_gives_its_slice_back_and_its_pool_may_shrink_to_nothing() -> None:
    """kuberay#1023, kuberay#1101, kuberay#3627: neither the default nor a time to live alone ends the cluster."""
    spec = made(config(pool(slices={"min": 0, "max": 1}), jobs=(job(),)))["rayjob-train.yaml"]["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["ttlSecondsAfterFinished"] == 300


def test_the_head_of_a_run_asks_for_no_chips_and_for_the_nodes_without() -> None:
    """kuberay#1023."""
    spec = made(config(pool(), jobs=(job(),)))["rayjob-train.yaml"]["spec"]
    head = spec["rayClusterSpec"]["headGroupSpec"]
    assert "google.com/tpu" not in json.dumps(head)
    assert head["template"]["spec"]["nodeSelector"] == {"tpu-ray/pool": "cpu"}


@pytest.mark.parametrize("key", ["shutdownAfterJobFinishes", "ttlSecondsAfterFinished"])
def test_what_would_keep_a_finished_runs_slice_cannot_be_said(key: str) -> None:
    """kuberay#3627, kuberay#1200: a time to live without the shutdown is no stack file."""
    assert key not in JobSpec.model_fields
    found = mistakes(config(pool(), jobs=(job(**{key: False}),)))
    assert list(found) == [f"jobs[0].{key}"]


@pytest.mark.parametrize(("topology", "right"), [("2x2", True), ("4x4", False)])
def test_an_operator_that_cannot_count_hosts_is_refused_where_there_are_several(topology: str, right: bool) -> None:
    """kuberay#3274: the pods run, the cluster is never ready, the run never begins, and the chips are paid."""
    found = mistakes(config(pool(topology=topology), jobs=(job(),), ray={"operator_version": "1.3.2"}))
    assert list(found) == ([] if right else ["platform.ray.operator_version"])
    assert right or "1.4.0" in found["platform.ray.operator_version"].reason


def test_an_operator_that_would_drop_a_field_is_refused() -> None:
    """kuberay#2084: an API server with an older CRD takes the manifest and forgets what it does not know."""
    stack = config(pool(topology="2x2"), services=(service(),), ray={"operator_version": "1.2.2"})
    assert list(mistakes(stack)) == ["platform.ray.operator_version"]


@pytest.mark.parametrize(
    ("platform", "tokens"),
    [
        ({}, True),
        ({"ray": {"operator_version": "1.5.1"}}, True),
        ({"ray": {"operator_version": "1.5.0"}}, False),
        ({"ray_version": "2.46.0"}, False),
        ({"ray": {"token_authentication": False}}, False),
    ],
    ids=str,
)
def test_ray_wants_a_token_wherever_kuberay_can_give_one(platform: dict[str, Any], tokens: bool) -> None:
    """kuberay#2084, for `authOptions`: where KubeRay does not know them, its own calls to the head carry no token."""
    for manifest in made(config(pool(slices=2), services=(service(),), jobs=(job(),), **platform)).values():
        spec = manifest["spec"]
        cluster = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
        assert cluster.get("authOptions") == ({"mode": "token"} if tokens else None)
        assert "RAY_AUTH" not in json.dumps(manifest)


def test_the_submitter_of_a_run_asks_for_no_chips_and_for_the_nodes_without() -> None:
    """kuberay#1023."""
    pod = made(config(pool(), jobs=(job(),)))["rayjob-train.yaml"]["spec"]["submitterPodTemplate"]
    assert "google.com/tpu" not in json.dumps(pod)
    assert pod["spec"]["nodeSelector"] == {"tpu-ray/pool": "cpu"}
    # KubeRay fills in the command only where there is none.
    assert set(pod["spec"]["containers"][0]) == {"name", "image", "resources"}


REDIS = {"redis_address": "redis://redis:6379", "password_secret": "ray-redis"}


def test_a_service_goes_before_everything_that_the_clean_up_in_redis_needs() -> None:
    """kuberay#3388, kuberay#4721: without namespace, secret or a node the finalizer stays, and `destroy` never ends."""
    stack = config(pool(), services=(service(),), namespace="ml", ray={"gcs_fault_tolerance": REDIS})
    found = {f"{one.type.rpartition(':')[2]} {one.name}": one for one in declared(stack)}
    made = found["RayService chat"]
    assert {
        "kubernetes:core/v1:Namespace workspace",
        "kubernetes:core/v1:ServiceAccount workspace",
        "gcp:container/nodePool:NodePool cpu",
        "gcp:container/nodePool:NodePool a-0",
        "gcp:container/cluster:Cluster cluster",
        # It waits until KubeRay has let the Ray clusters go, whose owner is away by then.
        "pulumi-python:dynamic/gke:Gone chat",
    } <= made.depends_on
    gone = found["Gone chat"].depends_on
    assert {"kubernetes:core/v1:Namespace workspace", "gcp:container/nodePool:NodePool cpu"} <= gone
    # The clean-up's pod needs the token's secret, which Kubernetes would take before the cluster from the foreground.
    assert made.inputs["metadata"]["annotations"]["pulumi.com/deletionPropagationPolicy"] == "background"
    assert made.inputs["spec"]["rayClusterConfig"]["gcsFaultToleranceOptions"] == {
        "redisAddress": "redis://redis:6379",
        "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "ray-redis", "key": "password"}}},
    }


def test_nothing_is_kept_in_redis_unless_it_is_asked_for_and_never_for_a_run() -> None:
    """kuberay#3388."""
    served = config(pool(slices=2), services=(service(),), jobs=(job(),))
    assert "gcsFaultTolerance" not in json.dumps(made(served))
    assert not [one for one in declared(served) if one.type.endswith("Gone")]
    asked = made(config(pool(slices=2), services=(service(),), jobs=(job(),), ray={"gcs_fault_tolerance": REDIS}))
    assert "gcsFaultTolerance" not in json.dumps(asked["rayjob-train.yaml"])
    assert "redisUsername" not in json.dumps(asked)


def test_a_password_in_a_redis_address_is_refused_and_not_repeated() -> None:
    """pulumi#16383."""
    redis = {"redis_address": "redis://:hunter2@redis:6379"}
    found = mistakes(config(pool(), services=(service(),), ray={"gcs_fault_tolerance": redis}))
    assert list(found) == ["platform.ray.gcs_fault_tolerance.redis_address"]
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(("operator", "right"), [("1.3.2", False), ("1.4.0", True)])
def test_a_range_needs_an_operator_that_knows_the_autoscalers_versions(operator: str, right: bool) -> None:
    """Before, the API server drops `autoscalerOptions.version` without a word."""
    services = (service(replicas={"max": 2}),)
    stack = config(pool(topology="2x2", slices=2), services=services, ray={"operator_version": operator})
    found = mistakes(stack)
    assert list(found) == ([] if right else ["platform.ray.operator_version"])
    assert right or "replicas: 1 to 2, a range, needs KubeRay 1.4.0" in found["platform.ray.operator_version"].reason
