"""The autoscaler: pools grow for pods that found no node, say what they do in GKE's words, and shrink when idle."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cloud.asked import CLUSTER_ID, scaled
from tests.cluster.doubles import World, pending, stock, workers
from tests.rig.gke_side.fit import Room, quantity, requests
from tests.rig.gke_side.kubernetes import Rest
from tests.rig.gke_side.scale_up import Backoff

ONE = f"{CLUSTER_ID}/nodePools/one"
SINGLE: dict[str, object] = {"name": "one", "placementPolicy": None, "node__machineType": "ct6e-standard-8t"}
OUT = (
    "Node scale up in zones us-east5-b associated with this pod failed: GCE out of resources. "
    "Pod is at risk of not being scheduled."
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def bind_all(world: World) -> None:
    """Each pod on a node of its own."""
    for pod, node in zip(list(world.cluster.put), sorted(world.cluster.held), strict=False):
        world.cluster.bind(pod, node)


def test_a_slice_grows_from_nothing_to_all_hosts_for_one_pod(world: World) -> None:
    world.make(**scaled(0, 4))
    world.cluster.pend(pending("a-0"))
    world.look(1)
    world.look()
    assert len(world.machines.running()) == 4
    ((name, type, reason, message),) = world.cluster.events
    assert (name, type, reason) == ("a-0", "Normal", "TriggeredScaleUp")
    assert message.startswith("pod triggered scale-up: [{https://www.googleapis.com/compute/v1/projects/tpu-ray-test/")
    assert "/zones/us-east5-b/instanceGroups/gke-main-slice-" in message
    assert message.endswith("-grp 0->4 (max: 4)}]")


def test_machines_on_their_way_are_waited_for(world: World) -> None:
    world.make(**scaled(0, 4))
    world.make(name="other", **scaled(0, 4))
    world.cluster.pend(*workers())
    world.look(1)
    for node in world.cluster.held.values():
        node["status"]["conditions"] = []
    for _ in range(3):
        world.look(1)
    assert len(world.machines.running()) == 4
    assert len(world.cluster.said("TriggeredScaleUp")) == 1


def test_each_slice_of_pods_gets_a_pool(world: World) -> None:
    world.make(**scaled(0, 4))
    world.make(name="other", **scaled(0, 4))
    world.cluster.pend(*workers(), *workers(group="b"))
    world.look(1)
    world.look()
    assert len(world.machines.running()) == 8


def test_pods_that_no_pool_takes_are_told_why_pool_by_pool(world: World) -> None:
    world.make(**scaled(0, 4))
    world.make(name="other", **scaled(0, 4))
    world.cluster.pend(pending("a-0", topology="8x8"), pending("a-1", chips=8), pending("a-2", tolerations=[]))
    world.look(1)
    assert not world.machines.started
    assert world.cluster.events == [
        (
            "a-0",
            "Normal",
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector",
        ),
        ("a-1", "Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient google.com/tpu"),
        (
            "a-2",
            "Normal",
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 2 node(s) had untolerated taint {google.com/tpu: present}",
        ),
    ]


def test_pools_of_fixed_size_are_no_business_of_the_autoscaler(world: World) -> None:
    world.make()
    world.cluster.pend(pending("a-0", topology="8x8"))
    world.look(1)
    assert world.cluster.events == []


def test_a_pool_at_its_most_says_so(world: World) -> None:
    world.make(**scaled(0, 4))
    world.cluster.pend(*workers())
    world.look(1)
    world.look()
    bind_all(world)
    world.cluster.pend(pending("b-0"))
    world.look(1)
    assert world.cluster.said("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 max node group size reached"]
    assert len(world.machines.running()) == 4


def test_out_of_stock_it_fails_backs_off_and_comes_later(world: World) -> None:
    world.make(**scaled(0, 4))
    world.settings(stock=stock(3))
    world.cluster.pend(pending("a-0"))
    world.look(1)
    assert [(type, reason) for _, type, reason, _ in world.cluster.events] == [
        ("Normal", "TriggeredScaleUp"),
        ("Warning", "FailedScaleUp"),
    ]
    assert world.cluster.said("FailedScaleUp") == [OUT]
    world.settings(stock=stock(4))
    world.look(29)
    assert world.cluster.said("NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    ]
    assert not world.machines.started
    world.look(1)
    world.look()
    assert len(world.machines.running()) == 4


def test_without_quota_it_fails_in_its_own_words(world: World) -> None:
    world.make(**scaled(0, 4))
    world.settings(quotas=[{"generation": "v6e", "region": "us-east5", "chips": 15}])
    world.cluster.pend(pending("a-0"))
    world.look(1)
    assert world.cluster.said("FailedScaleUp") == [OUT.replace("out of resources", "quota exceeded")]


def test_another_pool_is_asked_while_the_first_backs_off(world: World) -> None:
    world.make(**scaled(0, 4))
    world.make(name="west", **scaled(0, 4), node__labels={"spare": "yes"})
    world.settings(stock=stock(0))
    world.cluster.pend(pending("a-0"))
    world.look(1)
    world.settings()
    world.look(1)
    world.look()
    assert len(world.machines.running()) == 4
    assert world.names() == []


def test_backoff_doubles_up_to_half_an_hour_and_is_forgotten() -> None:
    backoff = Backoff()
    now, waits = 0.0, []
    for _ in range(5):
        backoff.fail("group", now)
        wait = next(seconds for seconds in range(1, 4000) if not backoff.resting(now + seconds))
        waits.append(wait)
        now += wait
    assert waits == [300, 600, 1200, 1800, 1800]
    now += 3 * 3600 + 1
    backoff.fail("group", now)
    assert backoff.resting(now + 299)
    assert not backoff.resting(now + 300)
    backoff.fail("group", now + 300)
    backoff.succeed("group")
    assert not backoff.resting(now + 301)


def test_single_hosts_come_as_many_as_are_needed_and_go_one_by_one(world: World) -> None:
    world.make(**SINGLE, **scaled(0, 3))
    world.cluster.pend(pending("a-0", 8, "2x4"), pending("a-1", 8, "2x4"))
    world.look(1)
    world.look()
    first, second = world.names(ONE)
    assert "0->2 (max: 3)" in world.cluster.said("TriggeredScaleUp")[0]
    world.cluster.bind("a-0", first)
    world.cluster.bind("a-1", second)
    world.look(1)
    world.cluster.put["a-0"]["status"] = {"phase": "Succeeded"}
    world.look(1)
    world.look(59)
    assert not world.machines.stopping
    world.look(1)
    world.look()
    assert list(world.machines.stopping) == [first]
    world.settle()
    assert world.names(ONE) == [second]


def test_total_limits_are_of_all_zones(world: World) -> None:
    limits = {"totalMinNodeCount": 0, "totalMaxNodeCount": 3}
    world.make(
        name="one",
        placementPolicy=None,
        nodeCount=None,
        nodeLocations=["us-east5-a", "us-east5-b"],
        autoscaling=limits,
    )
    world.cluster.pend(*(pending(f"a-{number}", topology="2x2") for number in range(5)))
    for _ in range(3):
        world.look(1)
    assert len(world.names(ONE)) == 3


def test_a_slice_without_pods_goes_whole_after_its_time(world: World) -> None:
    world.make(**scaled(0, 4))
    world.cluster.pend(*workers())
    world.look(1)
    world.look()
    bind_all(world)
    names = world.names()
    world.look(1)
    for pod in ("a-0", "a-1", "a-2"):
        del world.cluster.put[pod]
    world.look(600)
    world.look(600)
    assert not world.machines.stopping, "one host is in use"
    world.cluster.put["a-3"]["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
    world.look(1)
    world.look(60)
    world.look()
    assert sorted(world.machines.stopping) == sorted(names)
    world.settle()
    assert world.names() == []
    assert not world.cluster.held


def test_a_pool_keeps_its_least(world: World) -> None:
    world.make(**scaled(4, 4))
    world.look(1)
    world.look(6000)
    world.look()
    assert not world.machines.stopping
    assert len(world.names()) == 4


@pytest.mark.parametrize(
    ("written", "number"), [("500m", "0.5"), ("16Gi", "17179869184"), ("1k", "1000"), (4, "4"), ("1e3", "1000")]
)
def test_quantities(written: str | int, number: str) -> None:
    assert str(quantity(written).normalize().__format__("f")) == number


def test_a_pod_asks_for_its_containers_together_and_for_the_largest_of_those_that_run_before() -> None:
    def container(cpu: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}}

    spec = {"containers": [container("1"), container("500m")], "initContainers": [container("2"), container("1")]}
    assert requests({"spec": spec})["cpu"] == 2
    sidecar = {**container("1"), "restartPolicy": "Always"}
    assert requests({"spec": {**spec, "initContainers": [sidecar]}})["cpu"] == quantity("2.5")


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [("In", ["4x4"], True), ("NotIn", ["4x4"], False), ("Exists", [], True), ("DoesNotExist", [], False)],
)
def test_required_node_affinity(operator: str, values: list[str], fits: bool) -> None:
    room = Room({"topology": "4x4"}, [], {"pods": quantity(1)})
    terms = [{"matchExpressions": [{"key": "topology", "operator": operator, "values": values}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {"spec": {"containers": [], "affinity": {"nodeAffinity": required}}}
    assert (room.why_not(pod) == []) is fits


class Api:
    """An API server that writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path, body))
        code, answer = self.answers.get(f"{request.method} {request.url.path}", (200, {}))
        return httpx.Response(code, json=answer)

    def rest(self) -> Rest:
        return Rest(httpx.Client(base_url="http://cluster", transport=httpx.MockTransport(self)))


def test_an_event_is_made_as_the_autoscaler_makes_it_and_counted_from_then_on() -> None:
    api = Api()
    rest = api.rest()
    for _ in range(2):
        rest.tell(pending("a-0"), "Warning", "FailedScaleUp", OUT)
    (made, path, event), (again, of, counted) = api.asked
    assert (made, path) == ("POST", "/api/v1/namespaces/ray/events")
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a-0", "namespace": "ray", "uid": "uid-a-0"}
    assert event["involvedObject"] == about
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "FailedScaleUp", OUT)
    assert event["source"] == {"component": "cluster-autoscaler"}
    assert (again, of) == ("PATCH", f"{path}/{event['metadata']['name']}")
    assert counted["count"] == 2


def test_a_pod_that_ended_with_its_node_is_written_down_and_may_be_gone() -> None:
    api = Api()
    path = "/api/v1/namespaces/ray/pods/a-0/status"
    api.answers[f"PATCH {path}"] = 404, {}
    pod = pending("a-0")
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.rest().end_pod(pod)
    ((_, asked, body),) = api.asked
    assert asked == path
    assert body["status"]["phase"] == "Failed"
    conditions = {each["type"]: each["status"] for each in body["status"]["conditions"]}
    assert conditions == {"Ready": "False", "DisruptionTarget": "True"}


def test_a_node_that_is_about_to_go_is_tainted_once() -> None:
    api = Api()
    mine = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
    api.answers["GET /api/v1/nodes/n"] = 200, {"spec": {"taints": [mine]}}
    api.rest().announce_end("n")
    taints = api.asked[-1][2]["spec"]["taints"]
    ending = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
    assert taints == [mine, ending]
    api.answers["GET /api/v1/nodes/n"] = 200, {"spec": {"taints": taints}}
    api.asked.clear()
    api.rest().announce_end("n")
    assert [method for method, _, _ in api.asked] == ["GET"]
    api.answers["GET /api/v1/nodes/n"] = 404, {}
    api.rest().announce_end("n")


def test_what_the_api_server_refuses_is_an_error() -> None:
    api = Api()
    api.answers["DELETE /api/v1/nodes/n"] = 403, {}
    api.answers["DELETE /api/v1/nodes/gone"] = 404, {}
    api.rest().remove_node("gone")
    with pytest.raises(httpx.HTTPStatusError):
        api.rest().remove_node("n")
