"""What GKE refuses of a node pool because of what else there is, and of its changes."""

from tests.rig.cloud import refusals_capacity, refusals_pool_shape
from tests.rig.cloud.pool_asked import PoolAsked
from tests.rig.cloud.refusals_others import account_missing
from tests.rig.cloud.refused import Refused, bad_request, not_found
from tests.rig.cloud.settings import Settings
from tests.rig.cloud.versions import at_least
from tests.rig.cloud.world import CLUSTER, NODE_POOL, SUBNETWORK, World, region_of, subnetwork_id, text, whole
from tests.rig.gcp.values import Object, plain_list

TPU7X_FROM = "1.34.0-gke.2201000"
FLEX_START_FROM = "1.33.0-gke.1712000"


def name_taken(world: World, id: str) -> None:
    """The provider looks before it makes: terraform-provider-google-beta, resource_container_node_pool.go"""
    if world.get(NODE_POOL, id) is not None:
        raise Refused(f"resource - {id} - already exists")


def cluster_missing(world: World, pool: PoolAsked) -> None:
    """https://github.com/hashicorp/terraform-provider-google/issues/7851"""
    if world.get(CLUSTER, pool.cluster_id) is None:
        raise not_found(f"Not found: {pool.cluster_id}.")


def version_of_tpu7x(world: World, pool: PoolAsked) -> None:
    """Our words; https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood names the version."""
    version = text(pool.inputs.get("version")) or text(pool.cluster.get("masterVersion"))
    if pool.machine is not None and pool.machine.generation == "v7x" and not at_least(version, TPU7X_FROM):
        raise bad_request(
            f"Machine type {pool.machine_type} requires GKE version {TPU7X_FROM} or later, got {version}."
        )


def version_of_flex_start(world: World, pool: PoolAsked) -> None:
    """Our words; https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws names the version for TPUs."""
    version = text(pool.cluster.get("masterVersion"))
    if pool.machine is not None and (pool.flex_start or pool.queued) and not at_least(version, FLEX_START_FROM):
        raise bad_request(f"Flex-start with TPUs requires GKE version {FLEX_START_FROM} or later, got {version}.")


def service_account_missing(world: World, pool: PoolAsked) -> None:
    """https://github.com/midl-dev/tezos-on-gke/issues/45"""
    account_missing(world, text(pool.node.get("serviceAccount")) or default_account(world.settings))


def default_account(settings: Settings) -> str:
    """Compute Engine's own account in the project."""
    return f"{settings.number}-compute@developer.gserviceaccount.com"


def second_interface_elsewhere(world: World, pool: PoolAsked) -> None:
    """Compute Engine's answer for any missing resource.

    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1680
    """
    for one in pool.second_interfaces:
        id = subnetwork_id(world, text(one.get("subnetwork")), region_of(pool.zones[0]))
        if world.get(SUBNETWORK, id) is None:
            raise not_found(f"The resource '{id}' was not found")


def resize_of_slice(world: World, pool: PoolAsked, changed: Object, old: Object) -> None:
    """Quoted by three users (reports on GitHub), of `terraform apply` on tpu7x 2x2x2 and of `gcloud ... resize`."""
    if "nodeCount" in changed and pool.gang is not None and whole(changed["nodeCount"]) != whole(old.get("nodeCount")):
        raise Refused(
            f"googleapi: Error 501: Unimplemented: Multi-host TPU pool ({pool.name}) manual resize is not supported."
        )


def machines_of_slice(world: World, pool: PoolAsked, changed: Object, old: Object) -> None:
    """A slice is immutable: its machines cannot become others; our words.

    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
    """
    old_node = old.get("nodeConfig")
    old_type = text(old_node.get("machineType")) if isinstance(old_node, dict) else ""
    if "nodeConfig" in changed and pool.gang is not None and pool.machine_type != old_type:
        raise bad_request(f"Machine type of multi-host TPU pool ({pool.name}) cannot be changed.")


def zone_of_slice(world: World, pool: PoolAsked, changed: Object, old: Object) -> None:
    """A slice is immutable: it cannot move; our words.

    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
    """
    moved = set(map(text, plain_list(changed.get("nodeLocations")))) != set(
        map(text, plain_list(old.get("nodeLocations")))
    )
    if "nodeLocations" in changed and pool.gang is not None and moved:
        raise bad_request(f"Locations of multi-host TPU pool ({pool.name}) cannot be changed.")


WITH_OTHERS = (version_of_tpu7x, version_of_flex_start, service_account_missing, second_interface_elsewhere)


def refuse_pool(world: World, id: str, pool: PoolAsked) -> None:
    """Refuse a new pool before anything is made.

    Raises:
        Refused: with the first reason.
    """
    name_taken(world, id)
    cluster_missing(world, pool)
    refuse_machines(world, pool)
    refusals_capacity.flex_start_with_nodes(world, pool)


def refuse_machines(world: World, pool: PoolAsked) -> None:
    """What is asked of the first pool of a new cluster, too."""
    for rule in (*refusals_pool_shape.RULES, *WITH_OTHERS, *refusals_capacity.RULES, *refusals_capacity.OF_SIZE):
        rule(world, pool)


def fail_operation(world: World, pool: PoolAsked) -> None:
    """What goes wrong only after the call was accepted.

    Raises:
        OperationFailed: the pool is left in an error state.
    """
    refusals_pool_shape.placement_of_tpu7x(world, pool)
    refusals_pool_shape.gang_size(world, pool)
    refusals_capacity.stockout(world, pool)


def fail_change(world: World, pool: PoolAsked, changed: Object) -> None:
    """What a change fails of after it was accepted.

    Raises:
        OperationFailed: the pool has the size that it had.
    """
    if "nodeCount" in changed:
        refusals_capacity.stockout(world, pool)


def refuse_change(world: World, pool: PoolAsked, changed: Object, old: Object) -> None:
    """Refuse a change of a pool; `pool` is what it would become.

    Raises:
        Refused: with the first reason.
    """
    for change_rule in (resize_of_slice, machines_of_slice, zone_of_slice):
        change_rule(world, pool, changed, old)
    for rule in (*refusals_pool_shape.RULES, *WITH_OTHERS, *refusals_capacity.RULES):
        rule(world, pool)
    for rule in refusals_capacity.OF_SIZE if "nodeCount" in changed else ():
        rule(world, pool)
