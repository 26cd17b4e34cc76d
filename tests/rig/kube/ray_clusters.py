"""What KubeRay makes of a RayService's Ray cluster: one that runs, more worker groups in it, or a new one beside it.

From its source, ray-operator/controllers/ray of 1.5.1, 1.6.2 and 1.7.0: `reconcileRayCluster`, `shouldUpdateCluster`,
`shouldPrepareNewCluster` of rayservice_controller.go, `GenerateHashWithoutReplicasAndWorkersToDelete` of utils/util.go.
"""

import hashlib
import json
from copy import deepcopy
from typing import Any

import yaml

Json = dict[str, Any]
HASH, GROUPS = "ray.io/hash-without-replicas-and-workers-to-delete", "ray.io/num-worker-groups"


def asked(service: Json) -> Json:
    """The Ray cluster that a RayService asks for. Where its slices come and go, with as many of them as Serve's least:
    Serve would ask Ray's autoscaler for these, which would write them into the RayCluster.
    """
    spec: Json = service["spec"]["rayClusterConfig"]
    if not spec.get("enableInTreeAutoscaling"):
        return spec
    application = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"][0]
    least = application["deployments"][0]["autoscaling_config"]["min_replicas"]
    groups = [{**group, "replicas": int(number < least)} for number, group in enumerate(spec["workerGroupSpecs"])]
    return {**spec, "workerGroupSpecs": groups}


def annotations(spec: Json) -> dict[str, str]:
    """What KubeRay writes on a Ray cluster to know it again."""
    return {HASH: spec_hash(spec), GROUPS: str(len(spec["workerGroupSpecs"]))}


def spec_hash(spec: Json, groups: int | None = None) -> str:
    """Of the spec, or of it with its first worker groups only; without what does not count."""
    spec = deepcopy(spec)
    spec["workerGroupSpecs"] = spec["workerGroupSpecs"][:groups]
    spec["headGroupSpec"]["template"]["spec"].pop("tolerations", None)
    for group in spec["workerGroupSpecs"]:
        for muted in ("replicas", "minReplicas", "maxReplicas"):
            group.pop(muted, None)
        group["template"]["spec"].pop("tolerations", None)
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def same(cluster: Json, spec: Json) -> bool:
    """Whether the Ray cluster is what the RayService asks for."""
    return bool(cluster["metadata"]["annotations"][HASH] == spec_hash(spec))


def grown(cluster: Json, spec: Json) -> bool:
    """Whether the RayService asks for the same with worker groups more, at the end."""
    found = cluster["metadata"]["annotations"]
    groups = int(found[GROUPS])
    return len(spec["workerGroupSpecs"]) > groups and bool(found[HASH] == spec_hash(spec, groups))


def new_beside(service: Json) -> bool:
    """Whether a changed Ray cluster comes up beside the old one (isZeroDowntimeUpgradeEnabled)."""
    return str(service["spec"].get("upgradeStrategy", {}).get("type")) != "None"


def pods(spec: Json) -> dict[str, tuple[str, Json]]:
    """Every pod of a Ray cluster: the end of its name, its worker group and its template."""
    found = {"head-0": ("head", spec["headGroupSpec"]["template"])}
    for group in spec["workerGroupSpecs"]:
        name = group["groupName"]
        for number in range(group.get("replicas", group.get("minReplicas", 0)) * group.get("numOfHosts", 1)):
            found[f"{name}-{number}"] = (name, group["template"])
    return found
