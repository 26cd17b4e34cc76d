"""Which RayClusters the webhook refuses when they are made. Pure."""

from typing import Any

from tests.rig.webhook.worker import TOPOLOGY, Refusal, chips_asked, hosts_of

Json = dict[str, Any]
WRONG_HOSTS = "Number of workers in worker group not equal to specified topology"


class Unreadable(Exception):
    """A RayCluster that the webhook fails over: the user is told nothing of the reason."""


def check_hosts(cluster: Json) -> None:
    """Groups without chips are not looked at; `gke-tpu-accelerator` is not either.

    Raises:
        Refusal: a group has not as many hosts as its topology.
        Unreadable: a group has no topology, or one that is none.
    """
    for group in cluster["spec"].get("workerGroupSpecs", []):
        pod = group["template"]["spec"]
        chips = sum(map(chips_asked, pod["containers"]))
        if not chips:
            continue
        topology = pod.get("nodeSelector", {}).get(TOPOLOGY)
        if not topology:
            raise Unreadable(f"worker group {group['groupName']} has no nodeSelector {TOPOLOGY}")
        try:
            hosts = hosts_of(topology, chips)
        except Refusal as error:
            raise Unreadable(f"worker group {group['groupName']}: {error}") from None
        if group.get("numOfHosts", 1) != hosts:
            raise Refusal(WRONG_HOSTS)
