"""What Google gives back, against what the provider then plans: a second preview of an unchanged program.

The one difference is GKE's own doing and was observed with the real provider: hyper-threads off on TPU hosts.
"""

from pathlib import Path

import pytest

from tests.cloud.asked import cloud
from tests.cloud.everything import EACH
from tests.rig.cloud.world import NODE_POOL
from tests.rig.gcp.catalogue import load_catalogue
from tests.rig.gcp.check import check_inputs
from tests.rig.gcp.diff import describe, plan_create, plan_update
from tests.rig.gcp.send import creation, read_back
from tests.rig.gcp.settings import Settings

SETTINGS = Settings(project="tpu-ray-test", region="us-east5", zone="us-east5-b")
SHARES = ("cluster", "network", "subnetwork")


@pytest.mark.parametrize("refreshed", [False, True], ids=["after create", "after refresh"])
def test_an_unchanged_program_plans_no_change_but_the_one_that_gke_makes(refreshed: bool, tmp_path: Path) -> None:
    one, planned_again = cloud(tmp_path), {}
    for token, asked, _ in EACH:
        kind = load_catalogue().resources[token]
        inputs = check_inputs(kind, "x", asked, {}, b"seed", None).inputs
        planned = plan_create(kind, inputs, SETTINGS)
        sent = creation(kind, inputs, planned, SETTINGS)
        id, answer = one.create(token, sent)
        state = read_back(
            kind, {**planned, **sent, **{name: planned[name] for name in SHARES if name in planned}}, answer
        )
        if refreshed:
            state = read_back(kind, state, one.read(token, id) or {})
        plan = describe(plan_update(kind, inputs, state, SETTINGS, []), inputs)
        if plan.changed:
            planned_again[token] = sorted(plan.kinds)
    # `resourceManagerTags` is computed and comes with every change of the block.
    machines = ["nodeConfig.advancedMachineFeatures", "nodeConfig.resourceManagerTags"]
    assert planned_again == {NODE_POOL: machines}
