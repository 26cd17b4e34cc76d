"""What the webhook reads of a TPU worker's pod. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workloads.spec.generations import chips_of

Json = dict[str, Any]
RESOURCE = "google.com/tpu"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
APP, KUBERAY = "app.kubernetes.io/name", "kuberay"
CLUSTER, GROUP = "ray.io/cluster", "ray.io/group"
REPLICA = "replicaIndex"
"""The webhook's own label: `<group>-<replica>`."""
KUBERAY_NAME = "ray.io/worker-group-replica-name"
KUBERAY_REPLICA = "ray.io/worker-group-replica-index"
KUBERAY_HOST = "ray.io/replica-host-index"
"""KubeRay's, from 1.6; on a pod of a slice of one host only the replica's index."""


class Refusal(Exception):
    """Why a pod or a RayCluster is not admitted, in the webhook's words."""


@dataclass(frozen=True)
class Worker:
    """A TPU worker. `hosts` is of its slice, from topology and chips: `numOfHosts` is not in a pod."""

    cluster: str
    group: str
    hosts: int
    containers: tuple[int, ...]
    """Places of the containers that ask for chips."""
    labels: Mapping[str, str]
    v7x: bool


def worker_of(pod: Json) -> Worker | None:
    """None where no container asks for chips.

    Raises:
        Refusal: a label or the topology is missing, or no topology.
    """
    containers = pod["spec"]["containers"]
    asking = tuple(place for place, container in enumerate(containers) if chips_asked(container))
    if not asking:
        return None
    labels, selector = pod["metadata"].get("labels", {}), pod["spec"].get("nodeSelector", {})
    for named, found in (
        ("RayCluster label", labels.get(CLUSTER)),
        ("Group label", labels.get(GROUP)),
        ("TPU topology nodeSelector", selector.get(TOPOLOGY)),
    ):
        if not found:
            raise Refusal(f"Ray Pod created by KubeRay missing {named}")
    return Worker(
        cluster=labels[CLUSTER],
        group=labels[GROUP],
        hosts=hosts_of(selector[TOPOLOGY], sum(map(chips_asked, containers))),
        containers=asking,
        labels=labels,
        v7x=selector.get(ACCELERATOR) == "tpu7x",
    )


def chips_asked(container: Json) -> int:
    """Chips that a container asks for."""
    resources = container.get("resources", {})
    return int((resources.get("limits") or resources.get("requests") or {}).get(RESOURCE, 0))


def hosts_of(topology: str, chips_per_host: int) -> int:
    """Hosts of a slice of which each has so many chips; a part of a host is one.

    Raises:
        Refusal: that is no topology.
    """
    try:
        return max(chips_of(topology) // chips_per_host, 1)
    except ValueError:
        raise Refusal(f"{topology} is no TPU topology") from None


def value_of(pod: Json, container: int, name: str) -> str | None:
    """The text of an environment variable; None where it is unset, empty where it comes from elsewhere."""
    for variable in pod["spec"]["containers"][container].get("env", []):
        if variable["name"] == name:
            return str(variable.get("value", ""))
    return None
