"""A Ray cluster whose slices come and go with what waits for them. Pure.

Serve decides how many replicas there are. One that has no slice waits for the head of one (`workloads.reserve`; for
vLLM Ray's own reservation), Ray's autoscaler sees that, and KubeRay makes the slice's worker group. A slice that no
replica has is idle, and goes the same way.

It is the autoscaler's second version, Ray's default since 2.47: it reads a group's `replicas` together with the pods
that are there, so that KubeRay may write the Ray cluster anew (it does, where groups come) without ending a slice.
Neither version handles slices of several hosts, so a range is refused for these (`infra.stack.rules_replicas`).
"""

from infra.platforms.gke.cluster import Manifest
from workloads.spec.replicas import ReplicaCount

AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
"""For its container, which KubeRay puts into the head's pod beside Ray's own: what KubeRay would give it
(BuildAutoscalerContainer), written down so that another KubeRay asks the head's node for no more."""


def with_scaling(cluster: Manifest, count: ReplicaCount) -> Manifest:
    """The same RayClusterSpec, where a range of replicas makes all slices but the first come and go.

    Not `count.min` of them stay by themselves: KubeRay leaves `minReplicas` out of what it compares
    (GenerateHashWithoutReplicasAndWorkersToDelete), so that a smaller one would never reach a Ray cluster that runs,
    and its slices would stay and be billed. What keeps a slice is the replica on it, and Serve keeps `count.min` of
    these.

    `replicas` of a group that comes and goes is the autoscaler's to write, and nobody else's.
    """
    if not count.moves:
        return cluster
    groups = cluster["workerGroupSpecs"]
    assert isinstance(groups, list)
    first, *others = groups
    moving = [{**{key: of for key, of in group.items() if key != "replicas"}, "minReplicas": 0} for group in others]
    return {
        **cluster,
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "version": "v2",
            "idleTimeoutSeconds": count.idle_s,
            "resources": {"requests": dict(AUTOSCALER), "limits": dict(AUTOSCALER)},
        },
        "workerGroupSpecs": [first, *moving],
    }
