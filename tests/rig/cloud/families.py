"""How each type of resource is named, refused and filled in."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.rig.cloud import filled_network, filled_others, refusals_network, refusals_others
from tests.rig.cloud.filled_cluster import cluster_of, fill_cluster
from tests.rig.cloud.filled_pool import fill_pool, pool_id
from tests.rig.cloud.held import Thing
from tests.rig.cloud.pool_asked import pool_asked
from tests.rig.cloud.refusals_cluster import refuse_cluster
from tests.rig.cloud.refusals_pool import refuse_pool
from tests.rig.cloud.world import (
    ACCOUNT,
    ADDRESS,
    BUCKET,
    BUCKET_OBJECT,
    CLUSTER,
    CRYPTO_KEY,
    FIREWALL,
    GLOBAL_ADDRESS,
    KEY_RING,
    NETWORK,
    NODE_POOL,
    REPOSITORY,
    RESOURCE_POLICY,
    ROUTER,
    ROUTER_NAT,
    SERVICE,
    SUBNETWORK,
    World,
    text,
)
from tests.rig.gcp.values import Object

Refusal = Callable[[World, str, Object], None]


@dataclass(frozen=True)
class Family:
    """One type of resource.

    Attributes:
        name: as the provider's messages call it; of members what their policy belongs to.
        id: id of what the inputs describe.
        refuse: raises `Refused` where it cannot be made.
        fill: what Google makes of the inputs.
        minutes: how long Google takes to make one, roughly.
    """

    name: str
    id: Callable[[World, Object], str]
    refuse: Refusal
    fill: Callable[[World, str, Object], Thing]
    minutes: float = 0.0


def _nothing(world: World, id: str, inputs: Object) -> None:
    pass


def _taken(token: str, world: World, id: str, inputs: Object) -> None:
    refusals_network.taken(world, token, id)


def _in_network(token: str, world: World, id: str, inputs: Object) -> None:
    refusals_network.taken(world, token, id)
    refusals_network.network_missing(world, inputs)


def _subnetwork(world: World, id: str, inputs: Object) -> None:
    _in_network(SUBNETWORK, world, id, inputs)
    refusals_network.ranges_of_one(world, id, inputs)
    refusals_network.range_taken(world, id, inputs)


def _nat(world: World, id: str, inputs: Object) -> None:
    refusals_network.router_missing(world, filled_network.router_of(world, inputs))
    refusals_network.taken(world, ROUTER_NAT, id)


def _crypto_key(world: World, id: str, inputs: Object) -> None:
    refusals_others.key_ring_missing(world, id, inputs)
    refusals_others.crypto_key_taken(world, id, inputs)


def _pool(world: World, id: str, inputs: Object) -> None:
    refuse_pool(world, id, pool_asked(world, inputs))


def _fill_pool(world: World, id: str, inputs: Object) -> Thing:
    return fill_pool(world, inputs)


def _member(token: str, world: World, id: str, inputs: Object) -> None:
    refusals_others.member_of_nothing(world, token, filled_others.target_of(token, world, inputs))
    refusals_others.identity_pool_missing(world, text(inputs.get("member")))
    refusals_others.member_account_missing(world, text(inputs.get("member")))


def _members() -> dict[str, Family]:
    return {
        token: Family(
            filled_others.POLICIES[token],
            partial(filled_others.member_id, token),
            partial(_member, token),
            partial(filled_others.fill_member, token),
        )
        for token in filled_others.MEMBERS
    }


_global, _regional = filled_network.global_id, filled_network.regional_id
FAMILIES: dict[str, Family] = {
    CLUSTER: Family("Cluster", cluster_of, refuse_cluster, fill_cluster, 8.0),
    NODE_POOL: Family("NodePool", pool_id, _pool, _fill_pool, 5.0),
    NETWORK: Family(
        "Network", partial(_global, "networks"), partial(_taken, NETWORK), filled_network.fill_network, 0.3
    ),
    SUBNETWORK: Family(
        "Subnetwork", partial(_regional, "subnetworks"), _subnetwork, filled_network.fill_subnetwork, 0.3
    ),
    ROUTER: Family(
        "Router", partial(_regional, "routers"), partial(_in_network, ROUTER), filled_network.fill_router, 0.2
    ),
    ROUTER_NAT: Family("RouterNat", filled_network.nat_id, _nat, filled_network.fill_nat, 0.2),
    RESOURCE_POLICY: Family(
        "ResourcePolicy",
        partial(_regional, "resourcePolicies"),
        partial(_taken, RESOURCE_POLICY),
        filled_network.fill_policy,
        0.1,
    ),
    GLOBAL_ADDRESS: Family(
        "GlobalAddress",
        partial(_global, "addresses"),
        partial(_taken, GLOBAL_ADDRESS),
        filled_network.fill_address,
        0.1,
    ),
    ADDRESS: Family(
        "Address", partial(_regional, "addresses"), partial(_taken, ADDRESS), filled_network.fill_address, 0.1
    ),
    FIREWALL: Family(
        "Firewall", partial(_global, "firewalls"), partial(_in_network, FIREWALL), filled_network.fill_firewall, 0.2
    ),
    BUCKET: Family("Bucket", filled_others.bucket_id, refusals_others.bucket_taken, filled_others.fill_bucket),
    BUCKET_OBJECT: Family(
        "object", filled_others.object_id, refusals_others.object_of_no_bucket, filled_others.fill_object
    ),
    ACCOUNT: Family(
        "service account", filled_others.account_id, refusals_others.account_taken, filled_others.fill_account
    ),
    SERVICE: Family("Project Service", filled_others.service_id, _nothing, filled_others.fill_service, 0.3),
    REPOSITORY: Family(
        "Repository", filled_others.repository_id, refusals_others.repository_taken, filled_others.fill_repository, 0.2
    ),
    KEY_RING: Family("KeyRing", filled_others.key_ring_id, refusals_others.key_ring_taken, filled_others.fill_key_ring),
    CRYPTO_KEY: Family("CryptoKey", filled_others.crypto_key_id, _crypto_key, filled_others.fill_crypto_key),
    **_members(),
}
