"""What was there before the program."""

from tests.rig.cloud import buckets
from tests.rig.cloud.families import FAMILIES
from tests.rig.cloud.filled_cluster import make_identity_pool
from tests.rig.cloud.filled_pool import fill_pool, pool_id
from tests.rig.cloud.held import Thing
from tests.rig.cloud.pool_asked import default_pool
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK, World
from tests.rig.gcp.values import Object

DEFAULT_RANGE = "10.142.0.0/20"


def seed(world: World) -> dict[str, Thing]:
    """Make what the settings say exists, each thing once; the clusters among them that are new."""
    clusters: dict[str, Thing] = {}
    wanted: list[tuple[str, Object]] = []
    if world.settings.default_network:
        region: Object = {"name": "default", "region": world.settings.region, "ipCidrRange": DEFAULT_RANGE}
        wanted = [(NETWORK, {"name": "default"}), (SUBNETWORK, {**region, "network": "default"})]
    wanted += [(one.token, _plain(one.inputs)) for one in world.settings.existing]
    for token, inputs in wanted:
        id = FAMILIES[token].id(world, inputs)
        if not world.things.begin(f"{token} {id}"):
            continue
        thing = FAMILIES[token].fill(world, id, inputs)
        world.things.put(token, id, thing)
        buckets.keep_content(world.settings, token, thing)
        if token == CLUSTER:
            clusters[id] = thing
            make_identity_pool(world, thing)
            if inputs.get("removeDefaultNodePool") is not True:
                first = default_pool(id, inputs)
                world.things.put(NODE_POOL, pool_id(world, first), fill_pool(world, first))
    return clusters


def _plain(inputs: object) -> Object:
    return dict(inputs) if isinstance(inputs, dict) else {}
