"""What changes at Google without the program, seen by the next read."""

from pathlib import Path

import pytest

from tests.cloud.asked import CLUSTER_ID, cloud, pool, scaled, with_cluster
from tests.rig.cloud import drift
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL
from tests.rig.gcp.values import Object, plain_object

ID = f"{CLUSTER_ID}/nodePools/slice"


def with_pool(folder: Path, **changes: object) -> Cloud:
    one = with_cluster(cloud(folder))
    one.create(NODE_POOL, pool(**changes))
    return one


def seen(one: Cloud) -> Object:
    outputs = one.read(NODE_POOL, ID)
    assert outputs is not None
    return outputs


def test_the_autoscaler_moves_the_count_and_nothing_else(tmp_path: Path) -> None:
    one = with_pool(tmp_path, **scaled(0, 4))
    before = seen(one)
    drift.autoscaled(one, ID, 4)
    assert seen(one) == {**before, "nodeCount": 4}


@pytest.mark.parametrize("nodes", [2, 8])
def test_the_autoscaler_makes_a_slice_whole_or_not_at_all(nodes: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nodes"):
        drift.autoscaled(with_pool(tmp_path, **scaled(0, 4)), ID, nodes)


def test_the_autoscaler_leaves_fixed_pools_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="limits are None"):
        drift.autoscaled(with_pool(tmp_path), ID, 0)


def test_a_preempted_slice_has_no_nodes(tmp_path: Path) -> None:
    one = with_pool(tmp_path, node__spot=True)
    drift.preempted(one, ID)
    assert seen(one)["nodeCount"] == 0


def test_versions_move_on(tmp_path: Path) -> None:
    one = with_pool(tmp_path)
    drift.cluster_upgraded(one, CLUSTER_ID, "1.35.4-gke.1")
    assert (one.read(CLUSTER, CLUSTER_ID) or {})["masterVersion"] == "1.35.4-gke.1"
    assert seen(one)["version"] == "1.35.3-gke.1737000"
    drift.nodes_upgraded(one, CLUSTER_ID, "1.35.4-gke.1")
    assert seen(one)["version"] == "1.35.4-gke.1"


def test_hyper_threads_taints_and_labels_come_by_themselves(tmp_path: Path) -> None:
    one = with_pool(tmp_path, placementPolicy=None, node__machineType="n2-standard-8", node__labels={"team": "a"})
    drift.hyper_threads_off(one, ID)
    drift.tainted(one, ID)
    drift.node_labelled(one, ID, {"cloud.google.com/extra": "true"})
    drift.provisioning_labelled(one, ID, {"goog-gke-extra": "1"})
    node = plain_object(seen(one)["nodeConfig"])
    assert node["advancedMachineFeatures"] == {"threadsPerCore": 1}
    assert node["effectiveTaints"] == [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert node["labels"] == {"team": "a", "cloud.google.com/extra": "true"}
    assert plain_object(node["resourceLabels"])["goog-gke-extra"] == "1"


def test_labels_of_a_cluster_show_among_the_effective_ones(tmp_path: Path) -> None:
    one = with_pool(tmp_path)
    drift.cluster_labelled(one, CLUSTER_ID, {"mesh": "on"})
    outputs = one.read(CLUSTER, CLUSTER_ID) or {}
    assert plain_object(outputs["effectiveLabels"])["mesh"] == "on"


def test_a_first_pool_that_goes_takes_the_node_config_along(tmp_path: Path) -> None:
    one = with_cluster(cloud(tmp_path), removeDefaultNodePool=None)
    assert (one.read(CLUSTER, CLUSTER_ID) or {})["nodeConfig"] is not None
    drift.default_pool_gone(one, CLUSTER_ID)
    assert (one.read(CLUSTER, CLUSTER_ID) or {})["nodeConfig"] is None


def test_what_somebody_deletes_is_gone(tmp_path: Path) -> None:
    one = with_pool(tmp_path)
    drift.deleted_by_hand(one, NODE_POOL, ID)
    assert one.read(NODE_POOL, ID) is None
    with pytest.raises(ValueError, match="is not there"):
        drift.deleted_by_hand(one, NETWORK, "projects/tpu-ray-test/global/networks/none")
