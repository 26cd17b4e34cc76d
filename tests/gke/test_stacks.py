"""The project's stacks for Google Cloud, from nothing to nothing, on the real engine and a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.cloud import drift
from tests.rig.cloud.world import BUCKET, CLUSTER, NETWORK, NODE_POOL
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

RESERVED = [{"name": "tpu-ray-chat", "zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": 4}]


@pytest.fixture(params=["dev", "staging", "prod"])
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GkeCheckout]:
    with operated(tmp_path / "plane") as plane:
        yield GkeCheckout(tmp_path, request.param, plane, reservations=RESERVED)


def test_a_stack_comes_up_stays_the_same_and_goes(stack: GkeCheckout) -> None:
    assert set(stack.operate("preview").changes) == {"create"}
    shown = stack.plain_pulumi("preview --diff")
    assert "gcp:container/nodePool:NodePool: (create)" in shown
    assert not stack.things(NETWORK)
    up = stack.operate("up")
    assert up.ok, up.failures
    assert set(up.changes) == {"create"}
    assert sorted(stack.things(NODE_POOL)) == sorted(
        f"{stack.cluster_id}/nodePools/{name}" for name in ("cpu", "chat-0", "train-0")
    )
    nodes = stack.plane.every("/api/v1/nodes")
    assert {node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for node in nodes} == {"cpu", "chat-0"}
    assert set(stack.operate("preview").changes) == {"same"}

    changed_by_google(stack)
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []
    assert set(stack.tpu_ray("preview --expect-no-changes")["changes"]) == {"same"}

    if stack.platform["cluster"]["deletion_protection"]:
        before = {token: set(stack.things(token)) for token in (CLUSTER, NODE_POOL, NETWORK, BUCKET)}
        refused = stack.operate("destroy")
        assert "deletion_protection" in refused.failures[0].reason
        assert {token: set(stack.things(token)) for token in before} == before
        stack.platform["cluster"]["deletion_protection"] = False
        stack.write()
        assert steps(stack.operate("up")) == [("update", "Cluster cluster")]
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    order = [resource for operation, resource in steps(gone)]
    for earlier, later in (
        ("ServiceAccount workspace", "NodePool cpu"),
        ("NodePool chat-0", "Cluster cluster"),
        ("NodePool train-0", "Cluster cluster"),
        ("NodePool cpu", "Cluster cluster"),
        ("Cluster cluster", "Subnetwork network"),
        ("Subnetwork network", "Network network"),
        ("Network network", "Service apis-compute"),
        ("Cluster cluster", "Account nodes"),
    ):
        assert order.index(earlier) < order.index(later), (earlier, later, order)
    assert not stack.things(CLUSTER)
    assert not stack.things(NODE_POOL)
    assert not stack.things(NETWORK)
    # The bucket with the checkpoints stays unless the stack file says otherwise.
    assert bool(stack.things(BUCKET)) is not stack.platform.get("delete_storage", False)


def changed_by_google(stack: GkeCheckout) -> None:
    """What GKE does to a stack that nobody touches."""
    cloud, cluster = stack.cloud, stack.cluster_id
    drift.cluster_upgraded(cloud, cluster, "1.35.3-gke.1900000")
    drift.nodes_upgraded(cloud, cluster, "1.35.3-gke.1900000")
    drift.autoscaled(cloud, f"{cluster}/nodePools/train-0", 4)
    drift.autoscaled(cloud, f"{cluster}/nodePools/cpu", 2)
    for name in ("chat-0", "train-0"):
        drift.hyper_threads_off(cloud, f"{cluster}/nodePools/{name}")
        drift.provisioning_labelled(cloud, f"{cluster}/nodePools/{name}", {"goog-gke-accelerator-type": "tpu"})
    drift.cluster_labelled(cloud, cluster, {"goog-fleet-project": "1"})
