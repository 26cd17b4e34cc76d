"""The Ray cluster inside a RayService or RayJob: a head without chips, and one worker group for the pool's slices."""

import json

from infra.plan.identity import ACCOUNT, HUB_KEY, HUB_SECRET
from infra.plan.node_pools import POOL_LABEL, slice_selector
from infra.platforms.gke.machines import MACHINES
from infra.stack import GkePlatform, PoolSpec
from infra.stack.rules_names import CPU_POOL
from workloads.spec.pools import POOL_UNITS, pool_resource

Manifest = dict[str, object]

HEAD_CPUS, HEAD_MEMORY_GIB = 4, 16

# The names are ours, the numbers are Ray's, Serve's, libtpu's and JAX's defaults.
HEAD_PORTS = {"gcs-server": 6379, "dashboard": 8265, "client": 10001, "serve": 8000, "metrics": 8080}
WORKER_PORTS = {"serve": 8000, "metrics": 8080, "tpu-slice": 8471, "jax-coordinator": 8476}

HUB_TOKEN = {
    "name": "HF_TOKEN",
    # Optional: a stack without a token has no such secret.
    "valueFrom": {"secretKeyRef": {"name": HUB_SECRET, "key": HUB_KEY, "optional": True}},
}


def ray_cluster(platform: GkePlatform, pool: PoolSpec, slices: int) -> Manifest:
    """A RayClusterSpec with `slices` slices of the pool."""
    return {
        "rayVersion": platform.ray_version,
        "headGroupSpec": head_group(platform),
        # KubeRay leaves `replicas` out of what it compares, so that another number there would be taken and do nothing.
        # A group more at the end it adds to the cluster that runs (shouldUpdateCluster in rayservice_controller.go of
        # 1.5, 1.6 and 1.7): so every slice is a group of its own, and one more disturbs none.
        "workerGroupSpecs": [worker_group(platform, pool, f"{pool.name}-s{number}") for number in range(slices)],
    }


def head_group(platform: GkePlatform) -> Manifest:
    """The head: no chips, and no CPUs for Ray to schedule on, so that no work lands beside its own services."""
    container = {
        "name": "ray-head",
        "image": platform.image,
        "env": [HUB_TOKEN],
        "ports": _ports(HEAD_PORTS),
        "resources": _resources({"cpu": str(HEAD_CPUS), "memory": f"{HEAD_MEMORY_GIB}Gi"}),
    }
    containers = {"containers": [container]}
    return {
        "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0"},
        "template": {"spec": {**_identity({POOL_LABEL: CPU_POOL} if platform.cluster.is_made else {}), **containers}},
    }


def worker_group(platform: GkePlatform, pool: PoolSpec, name: str) -> Manifest:
    """One group for a slice: a KubeRay replica is a whole slice of `numOfHosts` pods.

    The pods get their place in the slice (`TPU_WORKER_ID`, `TPU_WORKER_HOSTNAMES`, hostname, affinity) from GKE's
    webhook and their toleration from GKE's admission, and KubeRay tells Ray the chips; none of it is written here.
    """
    shape = pool.slice
    machine = MACHINES[shape.machine_type]
    chips = str(shape.chips_per_host)
    container = {
        "name": "ray-worker",
        "image": platform.image,
        "env": [
            {"name": "JAX_PLATFORMS", "value": "tpu,cpu"},
            {"name": "TPU_RAY_POOL", "value": pool.name},
            HUB_TOKEN,
        ],
        "ports": _ports(WORKER_PORTS),
        "resources": _resources(
            {"cpu": str(machine.pod_cpus), "memory": f"{machine.pod_memory_gib}Gi", "google.com/tpu": chips}
        ),
    }
    # Two pools may have slices of one shape, at two prices: the label tells them apart where the pools are ours.
    mine = {POOL_LABEL: pool.name} if platform.cluster.gets_pools else {}
    return {
        "groupName": name,
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "numOfHosts": shape.hosts,
        # KubeRay (getResourcesMap in 1.5 and 1.6) takes the outer quotes off, parses the JSON, adds the chips and
        # writes it into the shell command of `ray start`: single quotes, because it would not unescape double ones.
        "rayStartParams": {"resources": f"'{json.dumps({pool_resource(pool.name): POOL_UNITS})}'"},
        "template": {"spec": {**_identity({**mine, **slice_selector(shape)}), "containers": [container]}},
    }


def _identity(selector: dict[str, str]) -> Manifest:
    """Where a pod runs, and as whom."""
    return {**({"nodeSelector": selector} if selector else {}), "serviceAccountName": ACCOUNT}


def _ports(ports: dict[str, int]) -> list[Manifest]:
    return [{"name": name, "containerPort": port} for name, port in ports.items()]


def _resources(amounts: dict[str, str]) -> Manifest:
    """Requests equal to limits: Kubernetes wants that for chips, and Ray plans with the limits."""
    return {"requests": dict(amounts), "limits": dict(amounts)}
