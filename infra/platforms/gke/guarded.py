"""What guards a Ray cluster, written into its manifest: whose it is, who may log in, who goes first, what a lost head
costs. Pure.

No probes are written. KubeRay (initLivenessAndReadinessProbe, 1.5 to 1.7) gives each Ray container its own: alive while
the raylet answers, dead after ten minutes of silence; ready once it does, and a service's worker only while Serve's
proxy answers there, because port 8000 leads to its pods. Loading weights and compiling keep no raylet from answering,
so neither ends a pod; the hosts of a slice that have no proxy are never ready, which is right.
"""

from infra.plan.identity import JOB_LABEL, SERVICE_LABEL, services_priority
from infra.plan.node_pools import POOL_LABEL
from infra.platforms.gke.cluster import Manifest
from infra.stack import GcsFaultTolerance, GkePlatform
from infra.stack.ray import authenticates
from infra.stack.rules_names import CPU_POOL


def of_service(platform: GkePlatform, cluster: Manifest, name: str) -> Manifest:
    """The Ray cluster of this service."""
    pods = {"priorityClassName": services_priority(platform.namespace)} if platform.ray.services_first else {}
    guarded = _guarded(platform, cluster, {SERVICE_LABEL: name}, pods)
    if platform.ray.gcs_fault_tolerance is None:
        return guarded
    return {**guarded, "gcsFaultToleranceOptions": _redis(platform.ray.gcs_fault_tolerance)}


def of_job(platform: GkePlatform, cluster: Manifest, name: str) -> Manifest:
    """The Ray cluster of a run of this job."""
    return _guarded(platform, cluster, {JOB_LABEL: name}, {})


def submitter(platform: GkePlatform, name: str) -> Manifest:
    """The pod that hands a run of this job to its Ray cluster, and shows its log: KubeRay's own, with the job's label,
    so that the head lets it in, and away from the machines with chips. KubeRay adds the command and the token.
    """
    container = {
        "name": "ray-job-submitter",
        "image": platform.image,
        "resources": {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    }
    selector = {"nodeSelector": {POOL_LABEL: CPU_POOL}} if platform.cluster.is_made else {}
    return {
        "metadata": {"labels": {JOB_LABEL: name}},
        "spec": {**selector, "restartPolicy": "Never", "containers": [container]},
    }


def _guarded(platform: GkePlatform, cluster: Manifest, labels: dict[str, str], pods: dict[str, str]) -> Manifest:
    tokens = {"authOptions": {"mode": "token"}} if authenticates(platform.ray, platform.ray_version) else {}
    head, groups = cluster["headGroupSpec"], cluster["workerGroupSpecs"]
    assert isinstance(head, dict)
    assert isinstance(groups, list)
    return {
        **cluster,
        **tokens,
        "headGroupSpec": _labelled(head, labels, pods),
        "workerGroupSpecs": [_labelled(group, labels, pods) for group in groups],
    }


def _labelled(group: Manifest, labels: dict[str, str], pods: dict[str, str]) -> Manifest:
    template = group["template"]
    assert isinstance(template, dict)
    metadata = template.get("metadata", {})
    metadata = {**metadata, "labels": {**metadata.get("labels", {}), **labels}}
    return {**group, "template": {**template, "metadata": metadata, "spec": {**template["spec"], **pods}}}


def _redis(redis: GcsFaultTolerance) -> Manifest:
    """Where the head keeps what it knows. The password comes by reference; each Ray cluster has keys of its own there,
    which KubeRay takes out again when it is deleted."""
    if redis.password_secret is None:
        return {"redisAddress": redis.redis_address}
    key = {"name": redis.password_secret, "key": redis.password_key}
    return {"redisAddress": redis.redis_address, "redisPassword": {"valueFrom": {"secretKeyRef": key}}}
