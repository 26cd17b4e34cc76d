"""What the pods of a vLLM service have besides. Pure."""

from copy import deepcopy
from typing import Any

from infra.plan.identity import HUB_KEY, HUB_SECRET
from infra.plan.llm import RAYS_TRIES, tries
from infra.platforms.gke.cluster import HUB_TOKEN, Manifest
from workloads.spec import ServiceSpec

HUB_FOLDER = "/etc/tpu-ray/hub"
VOLUME = "hub-token"


def with_vllm(cluster: Manifest, service: ServiceSpec) -> Manifest:
    """The same RayClusterSpec, fit for Ray Serve LLM.

    The hub's token is a file: Ray Serve LLM copies HF_TOKEN of its environment into the runtime_env of vLLM's workers
    (ENV_VARS_TO_PROPAGATE in ray/llm/_internal/serve/constants.py of 2.60.0), which Ray shows to whoever asks.
    huggingface_hub reads the file that HF_TOKEN_PATH names.

    Serve's controller, on the head, tries a replica's constructor three times whatever the application says, and each
    try waits 100 s for a slice; where the service is to wait longer, it is told so.
    """
    made: dict[str, Any] = deepcopy(cluster)
    for group in (made["headGroupSpec"], *made["workerGroupSpecs"]):
        spec = group["template"]["spec"]
        for container in spec["containers"]:
            container["env"] = [entry for entry in container["env"] if entry != HUB_TOKEN]
            container["env"].append({"name": "HF_TOKEN_PATH", "value": f"{HUB_FOLDER}/{HUB_KEY}"})
            mount = {"name": VOLUME, "mountPath": HUB_FOLDER, "readOnly": True}
            container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
        secret = {"secretName": HUB_SECRET, "optional": True}
        spec["volumes"] = [*spec.get("volumes", []), {"name": VOLUME, "secret": secret}]
    if (wanted := tries(service.reserve_timeout_s)) > RAYS_TRIES:
        head = made["headGroupSpec"]["template"]["spec"]["containers"][0]
        head["env"].append({"name": "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT", "value": str(wanted)})
    return made
