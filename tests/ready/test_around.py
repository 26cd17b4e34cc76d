"""What stands around the Ray clusters: who reaches which port, what may be evicted, who goes first."""

import ipaddress
from collections.abc import Mapping
from typing import Any

import pytest

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import Declared, declared
from tests.cases.stacks import Config, config, pool, service
from tests.render.kuberay import VERSIONS, module_dir

STACK = config(
    pool(slices=3),
    services=(service("chat", replicas=2),),
    jobs=({"name": "train", "pool": "a"},),
    namespace="ml",
)
Labels = Mapping[str, str]


def around(stack: Config) -> dict[str, Declared]:
    return {f"{one.type.rpartition(':')[2]} {one.name}": one for one in declared(stack)}


def pods(stack: Config) -> dict[str, Labels]:
    """Labels of the pods that the templates of the stack give: `service head`, `job worker`, `job submitter`, ..."""
    parsed = parse_stack(stack)
    assert isinstance(parsed.platform, GkePlatform)
    found: dict[str, Labels] = {}
    for manifest in manifests(parsed.platform, parsed).values():
        spec: Any = manifest["spec"]
        kind = "service" if manifest["kind"] == "RayService" else "job"
        cluster = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
        found[f"{kind} head"] = cluster["headGroupSpec"]["template"]["metadata"]["labels"]
        found[f"{kind} worker"] = cluster["workerGroupSpecs"][0]["template"]["metadata"]["labels"]
        if kind == "job":
            found["job submitter"] = spec["submitterPodTemplate"]["metadata"]["labels"]
    return found


def chosen(selector: Any, labels: Labels) -> bool:
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def comes_through(policy: Any, port: int, namespace: str, labels: Labels, address: str) -> bool:
    """Whether Kubernetes lets this pod (or, without a namespace, this address) reach the port of the policy's pods."""
    for rule in policy["ingress"]:
        if "ports" in rule and port not in [one["port"] for one in rule["ports"]]:
            continue
        if "from" not in rule:
            return True
        for peer in rule["from"]:
            if "ipBlock" in peer:
                if ipaddress.ip_address(address) in ipaddress.ip_network(peer["ipBlock"]["cidr"]):
                    return True
                continue
            if "namespaceSelector" in peer:
                there = bool(namespace) and chosen(
                    peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace}
                )
            else:
                there = namespace == "ml"
            if there and chosen(peer.get("podSelector", {}), labels):
                return True
    return False


OPERATOR = {"app.kubernetes.io/name": "kuberay-operator"}
KUSTOMIZED = {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/component": "kuberay-operator"}
# Who asks, from which namespace, the ports of a service's pods, of a run's pods.
ALL = frozenset({6379, 8265, 10001, 8000, 8080, 52365, 8471, 20000})
ROWS: list[tuple[str, str, Any, str, frozenset[int], frozenset[int]]] = [
    ("pods of the service", "ml", "service worker", "10.16.0.9", ALL, frozenset()),
    ("pods of the run", "ml", "job worker", "10.16.0.9", frozenset({8000}), ALL),
    ("the run's submitter", "ml", "job submitter", "10.16.0.9", frozenset({8000}), ALL),
    ("a neighbour", "ml", {"app": "notebook"}, "10.16.0.9", frozenset({8000}), frozenset()),
    ("another team", "other", {"tpu-ray/service": "chat"}, "10.16.0.9", frozenset({8000}), frozenset()),
    ("an own operator", "ray-system", OPERATOR, "10.16.0.9", frozenset({8000, 8265}), frozenset({8265})),
    ("a kustomized operator", "default", KUSTOMIZED, "10.16.0.9", frozenset({8000, 8265}), frozenset({8265})),
    ("the API server", "kube-system", {}, "10.16.0.9", frozenset({8000, 8265}), frozenset({8265})),
    ("the control plane", "", {}, "172.16.0.3", frozenset({8000, 8265}), frozenset({8265})),
    ("Google's collectors", "gke-gmp-system", {}, "10.16.0.9", frozenset({8000, 8080}), frozenset({8080})),
    ("the outside", "", {}, "198.51.100.7", frozenset({8000}), frozenset()),
]


@pytest.mark.parametrize(
    ("_who", "namespace", "labels", "address", "of_service", "of_job"), ROWS, ids=[r[0] for r in ROWS]
)
def test_who_reaches_which_port(
    _who: str, namespace: str, labels: Any, address: str, of_service: frozenset[int], of_job: frozenset[int]
) -> None:
    templates = pods(STACK)
    labels = templates[labels] if isinstance(labels, str) else labels
    found = around(STACK)
    for name, kind, ports in (("service-chat", "service", of_service), ("job-train", "job", of_job)):
        policy = found[f"NetworkPolicy {name}"].inputs["spec"]
        assert policy["policyTypes"] == ["Ingress"]
        # A policy that chooses none of the pods would let everybody in.
        mine = {pod for pod, has in templates.items() if chosen(policy["podSelector"], has)}
        assert mine == {pod for pod in templates if pod.startswith(kind)}
        assert {port for port in ALL if comes_through(policy, port, namespace, labels, address)} == ports


def test_a_cluster_that_was_there_has_a_control_plane_that_nobody_names() -> None:
    policy = around(config(pool(), services=(service(),), cluster={"existing": "shared"}))["NetworkPolicy service-chat"]
    assert "ipBlock" not in str(policy.inputs)


def test_no_pod_of_a_service_is_evicted_while_there_is_another_way() -> None:
    budget = around(STACK)["PodDisruptionBudget service-chat"].inputs["spec"]
    # The head, and four hosts of each of two slices. A RayCluster cannot be scaled, so only this form is heeded.
    assert budget == {"minAvailable": 9, "selector": {"matchLabels": {"tpu-ray/service": "chat"}}}
    assert not [name for name in around(STACK) if name.startswith("PodDisruptionBudget job")]


@pytest.mark.parametrize(("first", "name"), [(True, "tpu-ray.ml.services"), (False, None)])
def test_services_go_first_where_that_is_said(first: bool, name: str | None) -> None:
    stack = {**STACK, "tpu-ray:platform": {**STACK["tpu-ray:platform"], "ray": {"services_first": first}}}
    found = around(stack)
    spec = found["RayService chat"].inputs["spec"]["rayClusterConfig"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert group["template"]["spec"].get("priorityClassName") == name
    assert "priorityClassName" not in str(found["RayJob train-r1"].inputs)
    classes = [one.inputs for one in found.values() if one.type.endswith(":PriorityClass")]
    assert [(one["metadata"]["name"], one["preemptionPolicy"]) for one in classes] == (
        [(name, "Never")] if first else []
    )
    assert not classes or classes[0]["value"] > 0


@pytest.mark.parametrize("key", ["network_policy", "disruption_budgets"])
def test_what_is_not_wanted_is_not_made(key: str) -> None:
    stack = {**STACK, "tpu-ray:platform": {**STACK["tpu-ray:platform"], "ray": {key: False}}}
    kind = {"network_policy": "NetworkPolicy", "disruption_budgets": "PodDisruptionBudget"}[key]
    assert not [name for name in around(stack) if name.startswith(kind)]


def test_all_of_it_comes_before_the_pods() -> None:
    found = around(STACK)
    for name, before in (
        ("RayService chat", {"NetworkPolicy service-chat", "PodDisruptionBudget service-chat"}),
        ("RayJob train-r1", {"NetworkPolicy job-train"}),
    ):
        there = {one.rpartition(":")[2] for one in found[name].depends_on}
        assert before <= there


@pytest.mark.parametrize("version", VERSIONS)
def test_kuberay_gives_probes_that_loading_a_model_does_not_fail(version: str) -> None:
    """So none is written; what they ask, and how long, is in KubeRay's source."""
    parsed = parse_stack(STACK)
    assert isinstance(parsed.platform, GkePlatform)
    text = str(manifests(parsed.platform, parsed))
    assert "Probe" not in text
    # The ports that they ask are Ray's own, and Serve's is found by this name.
    assert "dashboard-agent-listen-port" not in text
    assert "{'name': 'serve', 'containerPort': 8000}" in text
    ray = module_dir(version) / "controllers" / "ray"
    constants = (ray / "utils" / "constant.go").read_text()

    def constant(name: str) -> int:
        return int(constants.split(f"{name} ")[1].split("=")[1].split()[0])

    # A raylet that does not answer for ten minutes ends its pod; weights and compilation are not asked about.
    assert constant("DefaultLivenessProbePeriodSeconds") * constant("DefaultLivenessProbeFailureThreshold") == 600
    source = (ray / "common" / "pod.go").read_text()
    assert "if rayContainer.LivenessProbe == nil" in source
    assert "if creatorCRDType == utils.RayServiceCRD && rayNodeType == rayv1.WorkerNode" in source
    assert 'RayServeProxyHealthPath   = "-/healthz"' in constants
