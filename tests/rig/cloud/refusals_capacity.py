"""What GKE refuses of the ways to get machines: spot, reservations, flex-start, queued provisioning, quota, stock."""

import re

from tests.rig.cloud.held import Thing
from tests.rig.cloud.machines import TPU_MACHINES
from tests.rig.cloud.pool_asked import PoolAsked
from tests.rig.cloud.refused import OperationFailed, Refused, bad_request, forbidden, not_found
from tests.rig.cloud.settings import Reservation
from tests.rig.cloud.world import NODE_POOL, World, last, mark, region_of, text, whole
from tests.rig.gcp.values import plain_list, plain_object

NO_RESERVATION = "NO_RESERVATION"
LONGEST_RUN_S = 7 * 24 * 3600
NOT_LENT = ("v4",)
QUOTA_NAMES = {"v4": "CT4P", "v5e": "CT5LP", "v5p": "CT5P", "v6e": "CT6E", "v7x": "TPU7X"}


def flex_start_without_autoscaling(world: World, pool: PoolAsked) -> None:
    """The words are quoted by users of `gcloud container node-pools create --flex-start` (reports on GitHub, 2026).

    The rule: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws
    """
    if pool.flex_start and pool.autoscaling is None:
        raise bad_request("Flex start node pools require autoscaling enabled.")


def flex_start_with_nodes(world: World, pool: PoolAsked) -> None:
    """The words are quoted by users of `gcloud container node-pools create --flex-start` (reports on GitHub, 2026).

    The rule: GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf, a precondition.
    """
    if pool.flex_start and pool.first_nodes:
        raise bad_request("Flex start node pools require initial node count to be set to 0.")


def flex_start_with_repair(world: World, pool: PoolAsked) -> None:
    """Our words; https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/4027 checks it beforehand."""
    if pool.flex_start and plain_object(pool.inputs.get("management")).get("autoRepair", True) is not False:
        raise bad_request("Flex start node pools require node auto repair to be disabled.")


def flex_start_with_spot(world: World, pool: PoolAsked) -> None:
    """Our words; precondition in GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf."""
    if pool.flex_start and pool.spot:
        raise bad_request("Flex start node pools don't support Spot VMs.")


def flex_start_with_reservation(world: World, pool: PoolAsked) -> None:
    """Left unstated is not enough: it has to be `--reservation-affinity=none`. Quoted by users (reports on GitHub).

    The rule: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws, and a precondition in
    GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
    """
    if pool.flex_start and pool.consumes != NO_RESERVATION:
        raise bad_request("Flex start node pools don't support reservations.")


def flex_start_and_queued(world: World, pool: PoolAsked) -> None:
    """https://github.com/AI-Hypercomputer/xpk/pull/900"""
    if pool.flex_start and pool.queued and pool.machine is not None:
        raise bad_request("Flex start node pools don't support TPUs with queued provisioning.")


def lent_generation(world: World, pool: PoolAsked) -> None:
    """TPU v4 is not lent; our words.

    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws: "TPU v3 and v4 are not supported"
    """
    if (pool.flex_start or pool.queued) and pool.machine is not None and pool.machine.generation in NOT_LENT:
        raise bad_request(f"Machine type {pool.machine_type} does not support flex-start provisioning.")


def longest_run(world: World, pool: PoolAsked) -> None:
    """Up to seven days; our words. https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws"""
    asked = re.fullmatch(r"(\d+)s", text(pool.node.get("maxRunDuration")))
    if asked and (pool.flex_start or pool.queued) and int(asked[1]) > LONGEST_RUN_S:
        raise bad_request(f"Max run duration {asked[0]} must not be longer than {LONGEST_RUN_S}s.")


def queued_with_nodes(world: World, pool: PoolAsked) -> None:
    """Our words; "autoscaling_total_min_nodes should be 0 when enable_queued_provisioning is true" in
    https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/3817
    """
    least = max(pool.least_nodes, whole((pool.autoscaling or {}).get("totalMinNodeCount")))
    if pool.queued and least:
        raise bad_request(f"Queued_provisioning requires a minimum node count of 0, got {least}.")


def queued_with_spot(world: World, pool: PoolAsked) -> None:
    """Our words; precondition in GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf."""
    if pool.queued and pool.spot:
        raise bad_request("Queued_provisioning is not supported with Spot VMs.")


def queued_with_reservation(world: World, pool: PoolAsked) -> None:
    """Also where nothing is stated: https://github.com/hashicorp/terraform-provider-google/issues/18341"""
    if pool.queued and pool.consumes != NO_RESERVATION:
        raise bad_request("Queued_provisioning requires reservation affinity to be set to none")


def spot_with_reservation(world: World, pool: PoolAsked) -> None:
    """Our words; https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/4531, and
    https://docs.cloud.google.com/compute/docs/instances/reservations-overview: Spot VMs consume none
    """
    if pool.spot and pool.consumes == "SPECIFIC_RESERVATION":
        raise bad_request("Spot VMs cannot consume reservations.")


def _reservation(world: World, pool: PoolAsked, name: str, zone: str) -> Reservation | None:
    owner = name.split("/")[1] if name.startswith("projects/") else None
    plain = name.partition("/reservations/")[2] if owner else name
    for one in world.settings.reservations:
        if (one.name, one.zone, one.project) == (plain.partition("/")[0], zone, owner):
            return one
    return None


def reservation_missing(world: World, pool: PoolAsked) -> None:
    """Also where it lies in another zone: https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/5043"""
    for name in pool.reservations:
        for zone in pool.zones:
            if _reservation(world, pool, name, zone) is None:
                raise not_found(
                    f'Google Compute Engine: reservation "{name}" not found for node pool "{pool.name}" at zone '
                    f'"{zone}".'
                )


def reservation_too_small(world: World, pool: PoolAsked) -> None:
    """Also where its machines are of another type: https://github.com/GoogleCloudPlatform/gsutil/issues/1000"""
    needed = max(pool.first_nodes, pool.least_nodes, 1)
    for name in pool.reservations:
        for zone in pool.zones:
            one = _reservation(world, pool, name, zone)
            fits = one is not None and one.machine_type == pool.machine_type
            left = one.hosts - _reserved(world, pool, name, zone) if one is not None and fits else 0
            if needed > left:
                raise Refused(
                    "googleapi: Error 429: Reservation does not have enough resources for the request: specific "
                    f'reservation "{name}" is insufficient for node pool "{pool.name}" at zone "{zone}": required '
                    f"{needed} and short of {needed - left} VM count of machine type {pool.machine_type}., "
                    "rateLimitExceeded"
                )


def _reserved(world: World, pool: PoolAsked, name: str, zone: str) -> int:
    used = 0
    for thing in _others(world, pool):
        affinity = plain_object(plain_object(thing.outputs.get("nodeConfig")).get("reservationAffinity"))
        if name in plain_list(affinity.get("values")):
            used += whole(plain_object(thing.own.get("sizes")).get(zone))
    return used


def _others(world: World, pool: PoolAsked) -> list[Thing]:
    mine = f"{pool.cluster_id}/nodePools/{pool.name}"
    return [thing for id, thing in world.every(NODE_POOL).items() if id != mine]


def quota(world: World, pool: PoolAsked) -> None:
    """Quota of chips, preemptible ones apart; reserved machines need none. The names of TPU quotas are not public.

    https://github.com/kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference/issues/48
    """
    if pool.machine is None or pool.consumes == "SPECIFIC_RESERVATION":
        return
    region, generation = region_of(pool.zones[0]), pool.machine.generation
    preemptible = pool.spot or pool.flex_start or pool.queued
    wanted = max(pool.first_nodes, pool.least_nodes) * len(pool.zones) * pool.machine.chips
    for one in world.settings.quotas:
        if (one.generation, one.region) != (generation, region):
            continue
        limit = one.preemptible if preemptible else one.chips
        left = max(0, limit - _chips_used(world, pool, region, preemptible))
        metric = ("PREEMPTIBLE_" if preemptible else "") + "TPUS_PER_TPU_FAMILY"
        if wanted > left:
            raise forbidden(
                f'Insufficient regional quota to satisfy request: resource "{metric}" ({QUOTA_NAMES[generation]}): '
                f"request requires '{wanted}.0' and is short '{wanted - left}.0'. project has a quota of '{limit}.0' "
                f"with '{left}.0' available. View and manage quotas at "
                f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={pool.project}."
            )


def _chips_used(world: World, pool: PoolAsked, region: str, preemptible: bool) -> int:
    used = 0
    for thing in _others(world, pool):
        node = plain_object(thing.outputs.get("nodeConfig"))
        machine = TPU_MACHINES.get(text(node.get("machineType")))
        queued = plain_object(thing.outputs.get("queuedProvisioning")).get("enabled") is True
        is_preemptible = node.get("spot") is True or node.get("flexStart") is True or queued
        reserved = plain_object(node.get("reservationAffinity")).get("consumeReservationType") == "SPECIFIC_RESERVATION"
        same = pool.machine is not None and machine is not None and machine.generation == pool.machine.generation
        if machine is None or not same or reserved or is_preemptible != preemptible:
            continue
        sizes = plain_object(thing.own.get("sizes"))
        used += sum(whole(size) for zone, size in sizes.items() if region_of(zone) == region) * machine.chips
    return used


def stockout(world: World, pool: PoolAsked) -> None:
    """The pool stays, in an error state: https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/6278"""
    wanted = max(pool.first_nodes, pool.least_nodes)
    for one in world.settings.stock:
        if one.machine_type != pool.machine_type or one.zone not in pool.zones:
            continue
        taken = sum(
            whole(plain_object(thing.own.get("sizes")).get(one.zone))
            for thing in _others(world, pool)
            if plain_object(thing.outputs.get("nodeConfig")).get("machineType") == one.machine_type
        )
        running = max(0, min(wanted, one.hosts - taken))
        if wanted > running:
            instance = f"gke-tpu-{mark(f'{pool.cluster_id}/{pool.name}/{one.zone}', 8)}-{mark(pool.name, 4)}"
            raise OperationFailed(
                f"Google Compute Engine: Not all instances running in IGM after 35m. Expected {wanted}, running "
                f"{running}, transitioning {wanted - running}. Current errors: [GCE_STOCKOUT]: Instance '{instance}' "
                f"creation failed: The zone 'projects/{pool.project}/zones/{last(one.zone)}' does not have enough "
                "resources available to fulfill the request."
            )


RULES = (
    flex_start_with_spot,
    flex_start_with_reservation,
    flex_start_and_queued,
    flex_start_without_autoscaling,
    flex_start_with_repair,
    lent_generation,
    longest_run,
    queued_with_nodes,
    queued_with_spot,
    queued_with_reservation,
    spot_with_reservation,
    reservation_missing,
)
"""Asked when a pool is made or changed."""

OF_SIZE = (reservation_too_small, quota)
"""Asked when a pool is made or resized."""
