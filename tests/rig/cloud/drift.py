"""What changes at Google without the program: one function for each, for a test to call between two runs.

All of them work on what is held, so that the next read shows it. Ids are those of the resources.
"""

from collections.abc import Callable, Sequence

from tests.rig.cloud import buckets
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.filled_pool import pools_of
from tests.rig.cloud.held import Thing
from tests.rig.cloud.nodes import TPU_TAINT, node_names
from tests.rig.cloud.pool_asked import pool_asked
from tests.rig.cloud.world import BUCKET, CLUSTER, NODE_POOL, World, whole
from tests.rig.gcp.values import Object, plain_object


def autoscaled(cloud: Cloud, pool_id: str, nodes: int) -> None:
    """The autoscaler brings each zone of a pool to so many nodes; Kubernetes nodes come and go with it.

    Raises:
        ValueError: not a size that the autoscaler would choose: it keeps to the limits, and a slice of several hosts
            has all of them or none.
    """
    with cloud.held.change() as things:
        thing = _held(things.get(NODE_POOL, pool_id), pool_id)
        pool = pool_asked(World(cloud.settings, things), thing.outputs)
        limits = pool.autoscaling
        most = whole((limits or {}).get("maxNodeCount")) or whole((limits or {}).get("totalMaxNodeCount"))
        if limits is None or not pool.least_nodes <= nodes <= most:
            raise ValueError(f"{pool_id}: the autoscaler does not make it {nodes} nodes: its limits are {limits}")
        if pool.gang is not None and nodes not in (0, pool.gang):
            raise ValueError(f"{pool_id}: {nodes} nodes of a slice of {pool.gang} hosts")
        before = node_names(pool_id, thing)
        sizes: Object = dict.fromkeys(pool.zones, nodes)
        things.put(NODE_POOL, pool_id, Thing(thing.outputs, {**thing.own, "sizes": sizes}))
    cloud.nodes_changed(pool_id, before)


def preempted(cloud: Cloud, pool_id: str) -> None:
    """All hosts of a spot pool are taken away; GKE brings none back until there are some."""
    with cloud.held.change() as things:
        thing = _held(things.get(NODE_POOL, pool_id), pool_id)
        before = node_names(pool_id, thing)
        things.put(NODE_POOL, pool_id, Thing(thing.outputs, {**thing.own, "sizes": {}}))
    cloud.nodes_changed(pool_id, before)


def cluster_upgraded(cloud: Cloud, cluster_id: str, version: str) -> None:
    """GKE moves the control plane on, as a release channel does."""
    _change(cloud, CLUSTER, cluster_id, lambda outputs: {**outputs, "masterVersion": version})


def nodes_upgraded(cloud: Cloud, cluster_id: str, version: str) -> None:
    """GKE moves all node pools of a cluster on."""
    with cloud.held.change() as things:
        for pool_id, thing in pools_of(World(cloud.settings, things), cluster_id).items():
            things.put(NODE_POOL, pool_id, Thing({**thing.outputs, "version": version}, thing.own))
    _change(cloud, CLUSTER, cluster_id, lambda outputs: {**outputs, "nodeVersion": version})


def hyper_threads_off(cloud: Cloud, pool_id: str) -> None:
    """GKE turns hyper-threads of the hosts off and reports that."""
    _change_node(cloud, pool_id, {"advancedMachineFeatures": {"threadsPerCore": 1}})


def tainted(cloud: Cloud, pool_id: str) -> None:
    """GKE taints the nodes of a pool: `google.com/tpu=present`."""
    _change_node(cloud, pool_id, {"effectiveTaints": [dict(TPU_TAINT)]})


def provisioning_labelled(cloud: Cloud, pool_id: str, labels: dict[str, str]) -> None:
    """GKE adds its own `goog-gke-...` labels to the machines of a pool."""
    with cloud.held.change() as things:
        node = plain_object(_held(things.get(NODE_POOL, pool_id), pool_id).outputs.get("nodeConfig"))
    _change_node(cloud, pool_id, {"resourceLabels": {**plain_object(node.get("resourceLabels")), **labels}})


def node_labelled(cloud: Cloud, pool_id: str, labels: dict[str, str]) -> None:
    """Somebody, or GKE, adds Kubernetes labels to the nodes of a pool."""
    with cloud.held.change() as things:
        node = plain_object(_held(things.get(NODE_POOL, pool_id), pool_id).outputs.get("nodeConfig"))
    _change_node(cloud, pool_id, {"labels": {**plain_object(node.get("labels")), **labels}})


def cluster_labelled(cloud: Cloud, cluster_id: str, labels: dict[str, str]) -> None:
    """Somebody adds labels to a cluster."""
    _change(
        cloud,
        CLUSTER,
        cluster_id,
        lambda outputs: {**outputs, "effectiveLabels": {**plain_object(outputs.get("effectiveLabels")), **labels}},
    )


def default_pool_gone(cloud: Cloud, cluster_id: str) -> None:
    """Somebody deletes a cluster's first pool: the cluster shows no `nodeConfig` any more."""
    with cloud.held.change() as things:
        things.drop(NODE_POOL, f"{cluster_id}/nodePools/default-pool")


def objects_written(cloud: Cloud, bucket: str, names: Sequence[str]) -> None:
    """A job writes objects into a bucket."""
    with cloud.held.change() as things:
        thing = _held(things.get(BUCKET, bucket), bucket)
        things.put(BUCKET, bucket, Thing(thing.outputs, {**thing.own, "objects": list(names)}))


def deleted_by_hand(cloud: Cloud, token: str, id: str) -> None:
    """Somebody deletes a resource."""
    with cloud.held.change() as things:
        thing = _held(things.get(token, id), id)
        things.drop(token, id)
        buckets.drop_content(cloud.settings, token, thing)


def _change_node(cloud: Cloud, pool_id: str, block: Object) -> None:
    _change(
        cloud,
        NODE_POOL,
        pool_id,
        lambda outputs: {**outputs, "nodeConfig": {**plain_object(outputs.get("nodeConfig")), **block}},
    )


def _change(cloud: Cloud, token: str, id: str, change: Callable[[Object], Object]) -> None:
    with cloud.held.change() as things:
        thing = _held(things.get(token, id), id)
        things.put(token, id, Thing(change(thing.outputs), thing.own))


def _held(thing: Thing | None, id: str) -> Thing:
    if thing is None:
        raise ValueError(f"{id} is not there")
    return thing
