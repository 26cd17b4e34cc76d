"""What GKE does inside a cluster: nodes and the Ray add-on's definitions, on a fake and over REST."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.cloud.asked import CLUSTER_ID, cluster, pool, scaled, with_network
from tests.rig.cloud import drift
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.control_plane import ControlPlane, write_control_plane
from tests.rig.cloud.kubernetes_side import ApiServer
from tests.rig.cloud.settings import Settings, write_settings
from tests.rig.cloud.world import CLUSTER, NODE_POOL
from tests.rig.gcp.values import Object, plain_list, plain_object

POOL_ID = f"{CLUSTER_ID}/nodePools/slice"


@dataclass
class Fake:
    """Remembers what it was told."""

    nodes: dict[str, Object] = field(default_factory=dict)
    definitions: list[Path] = field(default_factory=list)

    def install_definitions(self, files: Sequence[Path]) -> None:
        self.definitions += files

    def add_nodes(self, nodes: Sequence[Object]) -> None:
        self.nodes |= {str(plain_object(node["metadata"])["name"]): node for node in nodes}

    def remove_nodes(self, names: Sequence[str]) -> None:
        for name in names:
            self.nodes.pop(name, None)


@pytest.fixture
def fake() -> Fake:
    return Fake()


def with_plane(folder: Path, fake: Fake, seconds_per_minute: float = 0.0) -> Cloud:
    plane = ControlPlane(url="https://127.0.0.1:6443", ca_pem_base64="Q0E=", token="t", crd_files=(Path("ray.yaml"),))
    write_control_plane(folder, plane)
    one = with_network(Cloud(folder, lambda _: fake))
    write_settings(folder, Settings(seconds_per_minute=seconds_per_minute))
    return one


def test_a_cluster_hands_out_the_api_server(tmp_path: Path, fake: Fake) -> None:
    _, outputs = with_plane(tmp_path, fake).create(CLUSTER, cluster())
    assert outputs["endpoint"] == "127.0.0.1:6443"
    assert plain_object(outputs["masterAuth"])["clusterCaCertificate"] == "Q0E="


def test_the_ray_add_on_brings_its_definitions(tmp_path: Path, fake: Fake) -> None:
    with_plane(tmp_path, fake).create(CLUSTER, cluster())
    assert fake.definitions == [Path("ray.yaml")]


def test_without_the_add_on_there_are_no_definitions_until_it_is_turned_on(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster(addonsConfig={"rayOperatorConfigs": [{"enabled": False}]}))
    assert fake.definitions == []
    one.update(CLUSTER, CLUSTER_ID, {"addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]}})
    assert fake.definitions == [Path("ray.yaml")]


def test_definitions_come_a_little_later_also_where_nobody_calls(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake, seconds_per_minute=0.05)
    one.create(CLUSTER, cluster())
    assert fake.definitions == []
    until = time.monotonic() + 10
    while not fake.definitions and time.monotonic() < until:
        time.sleep(0.01)
    assert fake.definitions == [Path("ray.yaml")]


def test_definitions_that_fell_due_meanwhile_come_with_the_next_process(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    with one.held.change() as things:
        things.plan(time.time() - 1, "definitions", CLUSTER_ID)
    Cloud(tmp_path, lambda _: fake)
    Cloud(tmp_path, lambda _: fake)
    assert fake.definitions == [Path("ray.yaml")]


def test_a_slice_makes_nodes_as_gke_labels_and_taints_them(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool(node__spot=True, node__labels={"team": "a"}))
    assert len(fake.nodes) == 4
    for name, node in fake.nodes.items():
        labels = plain_object(plain_object(node["metadata"])["labels"])
        assert name.startswith("gke-tpu-")
        assert labels["cloud.google.com/gke-nodepool"] == "slice"
        assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v6e-slice"
        assert labels["cloud.google.com/gke-tpu-topology"] == "4x4"
        assert labels["cloud.google.com/gke-accelerator-count"] == "4"
        assert labels["cloud.google.com/gke-spot"] == "true"
        assert labels["node.kubernetes.io/instance-type"] == "ct6e-standard-4t"
        assert labels["topology.kubernetes.io/zone"] == "us-east5-b"
        assert labels["topology.kubernetes.io/region"] == "us-east5"
        assert labels["team"] == "a"
        taints = plain_object(node["spec"])["taints"]
        assert taints == [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]
        capacity = plain_object(plain_object(node["status"])["capacity"])
        assert (capacity["google.com/tpu"], capacity["cpu"], capacity["memory"]) == ("4", "180", "720Gi")
        assert plain_object(plain_object(node["status"])["allocatable"])["google.com/tpu"] == "4"


def test_nodes_of_a_pool_whose_maker_ended_early_come_with_the_next_process(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool())
    fake.nodes.clear()
    with one.held.change() as things:
        things.plan(time.time() - 1, "nodes", POOL_ID)
    Cloud(tmp_path, lambda _: fake)
    assert len(fake.nodes) == 4


def test_single_hosts_are_labelled_with_the_topology_of_their_machine(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool(placementPolicy=None, nodeCount=2, node__machineType="ct6e-standard-8t"))
    labels = [plain_object(plain_object(node["metadata"])["labels"]) for node in fake.nodes.values()]
    assert [each["cloud.google.com/gke-tpu-topology"] for each in labels] == ["2x4", "2x4"]


def test_nodes_go_with_their_pool_and_with_their_cluster(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool())
    one.create(NODE_POOL, pool(name="second"))
    one.delete(NODE_POOL, POOL_ID, {})
    assert len(fake.nodes) == 4
    one.delete(CLUSTER, CLUSTER_ID, {})
    assert fake.nodes == {}


def test_nodes_follow_the_autoscaler_and_keep_their_names(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool(**scaled(0, 4)))
    assert fake.nodes == {}
    drift.autoscaled(one, POOL_ID, 4)
    first = set(fake.nodes)
    assert len(first) == 4
    drift.autoscaled(one, POOL_ID, 0)
    assert fake.nodes == {}
    drift.autoscaled(one, POOL_ID, 4)
    assert set(fake.nodes) == first


def test_where_machines_run_the_nodes_their_kubelets_make_them(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    write_settings(tmp_path, Settings(machines=True))
    one.create(CLUSTER, cluster())
    one.create(NODE_POOL, pool())
    assert fake.definitions == [Path("ray.yaml")]
    assert fake.nodes == {}
    fake.nodes["registered"] = {}
    one.delete(NODE_POOL, POOL_ID, {})
    assert list(fake.nodes) == ["registered"]


class Recorder(ThreadingHTTPServer):
    """A REST server that writes down what it is asked, and answers 201, or what `answers` says of a path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, object]] = []
        self.tokens: set[str] = set()
        self.answers: dict[tuple[str, str], int] = {}


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None))
        self.server.tokens.add(self.headers.get("Authorization") or "")
        self.send_response(self.server.answers.get((self.command, self.path), 201))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def api_server(recorder: Recorder) -> ApiServer:
    return ApiServer(ControlPlane(url=f"http://127.0.0.1:{recorder.server_port}", token="secret"))


NODE: Object = {
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "google.com/tpu"}]},
    "status": {"capacity": {"cpu": "1"}},
}


def test_a_node_is_made_with_its_status_and_only_its_own_taints(recorder: Recorder) -> None:
    api_server(recorder).add_nodes([NODE])
    made, status, taints = recorder.asked
    assert made == ("POST", "/api/v1/nodes", {"metadata": NODE["metadata"], "spec": NODE["spec"]})
    assert status == ("PATCH", "/api/v1/nodes/n/status", {"status": NODE["status"]})
    assert taints == ("PATCH", "/api/v1/nodes/n", {"spec": {"taints": [{"key": "google.com/tpu"}]}})
    assert recorder.tokens == {"Bearer secret"}


def test_what_is_there_already_or_gone_already_is_no_error(recorder: Recorder, tmp_path: Path) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    recorder.answers = {("POST", "/api/v1/nodes"): 409, ("DELETE", "/api/v1/nodes/n"): 404, ("POST", definitions): 409}
    file = tmp_path / "ray.yaml"
    file.write_text("kind: CustomResourceDefinition\nmetadata: {name: a}\n---\nkind: CustomResourceDefinition\n")
    side = api_server(recorder)
    side.add_nodes([NODE])
    side.remove_nodes(["n"])
    side.install_definitions([file])
    bodies = [body for _, path, body in recorder.asked if path == definitions]
    assert bodies == [
        {"kind": "CustomResourceDefinition", "metadata": {"name": "a"}},
        {"kind": "CustomResourceDefinition"},
    ]


def test_a_refusal_of_the_api_server_is_an_error(recorder: Recorder) -> None:
    recorder.answers = {("POST", "/api/v1/nodes"): 403}
    with pytest.raises(httpx.HTTPStatusError):
        api_server(recorder).add_nodes([NODE])


def test_a_broken_certificate_is_an_error_at_once() -> None:
    with pytest.raises(OSError, match=r"PEM|certificate|SSL"):
        ApiServer(ControlPlane(url="https://127.0.0.1:1", ca_pem_base64=base64.b64encode(b"nothing").decode()))


def test_taints_of_the_program_are_on_the_nodes_too(tmp_path: Path, fake: Fake) -> None:
    one = with_plane(tmp_path, fake)
    one.create(CLUSTER, cluster())
    taint = {"key": "team", "value": "a", "effect": "NO_EXECUTE"}
    one.create(NODE_POOL, pool(node__taints=[taint]))
    node = next(iter(fake.nodes.values()))
    keys = [plain_object(each)["key"] for each in plain_list(plain_object(node["spec"])["taints"])]
    assert keys == ["team", "google.com/tpu"]
