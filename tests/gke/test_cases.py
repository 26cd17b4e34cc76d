"""What went wrong for others and only a run of the engine shows: one stack, brought up once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gke.edit import PLATFORM, SERVICES, Config
from tests.rig.cloud.held import Thing
from tests.rig.cloud.world import BUCKET, CLUSTER, NETWORK, NODE_POOL, SUBNETWORK
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

TOKEN = "hf_EXAMPLE"
CHAT = {"name": "chat", "generation": "v6e", "topology": "2x2", "slices": 2}
SCHOOL = {"name": "school", "generation": "v6e", "topology": "4x4", "slices": 1}


def config(*pools: dict[str, Any], protected: bool = False) -> Config:
    """A stack with these pools, and a service on each."""
    return {
        "tpu-ray:platform": {**PLATFORM, "cluster": {"deletion_protection": protected}},
        "tpu-ray:pools": list(pools),
        "tpu-ray:services": [{**SERVICES[0], "name": pool["name"], "pool": pool["name"]} for pool in pools],
        "tpu-ray:jobs": [],
    }


class Shared:
    """The stack with a secret in its file, whatever else stands there."""

    def __init__(self, checkout: GkeCheckout, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder
        # The stack has to be there before a secret of it can be stored.
        assert checkout.operate("preview").ok
        self.keep(TOKEN)

    def keep(self, token: str) -> None:
        """Store the token as a user does: encrypted, in the stack file."""
        self.pulumi(f"config set --secret tpu-ray:hubToken {token}")
        self.checkout.settings = yaml.safe_load(self.checkout.stack_file.read_text())
        self.secret = self.checkout.settings["config"]["tpu-ray:hubToken"]

    def pulumi(self, command: str) -> str:
        """What a plain `pulumi` command on the stack prints; it reads and writes the user's own stack file."""
        return self.checkout.run(f'eval "$(tpu-ray env -s dev)" && pulumi {command} -s dev --non-interactive')

    def with_config(self, config: Config) -> GkeCheckout:
        return self.checkout.with_config({**config, "tpu-ray:hubToken": self.secret})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("cases")
    with operated(folder / "plane") as plane:
        made = Shared(GkeCheckout(folder, "dev", plane, config=config(CHAT, SCHOOL)), folder)
        outcome = made.with_config(config(CHAT, SCHOOL)).operate("up")
        assert outcome.ok, outcome.failures
        yield made


def test_a_second_preview_changes_nothing_also_after_a_refresh(shared: Shared) -> None:
    """pulumi-gcp#744, pulumi-gcp#2247: Google shows the cluster without the `nodeConfig` of its deleted first pool."""
    stack = shared.with_config(config(CHAT, SCHOOL))
    (cluster,) = stack.things(CLUSTER).values()
    assert "nodeConfig" not in cluster.outputs
    assert set(stack.operate("preview").changes) == {"same"}
    assert stack.operate("refresh").ok
    assert set(stack.operate("preview").changes) == {"same"}


def test_one_slice_more_is_one_node_pool_more_and_the_first_is_not_touched(shared: Shared) -> None:
    """pulumi-gcp#412: from one slice of 4x4 to two, `-1` is made with four nodes and `-0` stays."""
    stack = shared.with_config(config(CHAT, SCHOOL))
    before = stack.things(NODE_POOL)
    grown = shared.with_config(config(CHAT, {**SCHOOL, "slices": 2})).operate("up")
    assert grown.ok, grown.failures
    assert steps(grown) == [("create", "NodePool school-1")]
    after = stack.things(NODE_POOL)
    made = f"{stack.cluster_id}/nodePools/school-1"
    assert {id: thing for id, thing in after.items() if id != made} == before
    nodes = [node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for node in stack.plane.every("/api/v1/nodes")]
    assert [nodes.count(name) for name in ("school-0", "school-1")] == [4, 4]
    shrunk = shared.with_config(config(CHAT, SCHOOL)).operate("up")
    assert steps(shrunk) == [("delete", "NodePool school-1")]


def test_a_pool_that_somebody_resized_is_set_back_and_not_replaced(shared: Shared) -> None:
    """pulumi-gcp#412, terraform-provider-google#6354: resized outside Pulumi and refreshed, it was deleted and made."""
    stack = shared.with_config(config(CHAT, SCHOOL))
    pool = f"{stack.cluster_id}/nodePools/chat-0"
    with stack.cloud.held.change() as things:
        held = things.get(NODE_POOL, pool)
        assert held is not None
        things.put(NODE_POOL, pool, Thing(held.outputs, {**held.own, "sizes": {"us-east5-b": 3}}))
    assert stack.operate("refresh").ok
    assert steps(stack.operate("preview")) == [("update", "NodePool chat-0")]
    assert stack.operate("up").ok
    assert set(stack.operate("preview").changes) == {"same"}


def test_a_secret_is_in_clear_nowhere_but_in_the_cluster(shared: Shared) -> None:
    """pulumi#16383, pulumi#6531: masked in the terminal, readable in `stack export`."""
    stack = shared.with_config(config(CHAT, SCHOOL))
    # Another token, so that the old one and the new one are compared.
    shared.keep(f"{TOKEN}_2")
    shown = [stack.plain_pulumi("preview --diff"), stack.plain_pulumi("up --yes --diff"), shared.pulumi("stack export")]
    assert all("workspace-hub" in text for text in shown)
    shown += [shared.pulumi("stack history"), stack.run("tpu-ray preview -s dev --json")]
    assert not [text for text in shown if TOKEN in text]
    assert [str(file) for file in _files(shared.folder) if TOKEN.encode() in file.read_bytes()] == []
    namespace = PLATFORM["namespace"]
    (secret,) = stack.plane.every(f"/api/v1/namespaces/{namespace}/secrets")
    assert list(secret["data"]) == ["token"]


def _files(folder: Path) -> Iterator[Path]:
    """Everything that the stack, its state and its cloud left on disk; not the API server, whose secret it is."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and "plane" not in file.relative_to(folder).parts:
            yield file


def test_a_protected_stack_loses_nothing_to_destroy_however_it_is_called(shared: Shared) -> None:
    """pulumi-gcp#1394: the node pools were gone when Google refused to delete the cluster."""
    stack = shared.with_config(config(CHAT, SCHOOL, protected=True))
    assert steps(stack.operate("up")) == [("update", "Cluster cluster")]
    kinds = (CLUSTER, NODE_POOL, NETWORK, SUBNETWORK, BUCKET)
    before = {kind: stack.things(kind) for kind in kinds}
    refused = stack.operate("destroy")
    assert "write false" in refused.failures[0].reason
    with pytest.raises(AssertionError, match="protect"):
        stack.plain_pulumi("destroy --yes")
    assert {kind: stack.things(kind) for kind in kinds} == before
    namespaces = {one["metadata"]["name"] for one in stack.plane.every("/api/v1/namespaces")}
    assert PLATFORM["namespace"] in namespaces
    assert steps(shared.with_config(config(CHAT, SCHOOL)).operate("up")) == [("update", "Cluster cluster")]


def test_an_edit_that_a_protected_stack_refuses_names_the_key(shared: Shared) -> None:
    """pulumi-gcp#1394: Pulumi's own words send people to `pulumi state unprotect`, and the next `up` protects again."""
    assert shared.with_config(config(CHAT, SCHOOL, protected=True)).operate("up").ok
    larger = {**SCHOOL, "topology": "4x8"}
    # What the engine comes to first: it deletes the service of a pool before the pool.
    edits = (
        (config(CHAT, protected=True), "Ready school"),
        (config(CHAT), "Ready school"),
        (config(CHAT, larger, protected=True), "NodePool school-0"),
    )
    for edited, refused in edits:
        (told,) = shared.with_config(edited).operate("preview").failures
        assert told.reason.startswith("tpu-ray:platform.cluster.deletion_protection was true")
        assert refused in told.reason
        assert "state unprotect" not in told.reason
    assert steps(shared.with_config(config(CHAT, SCHOOL)).operate("up")) == [("update", "Cluster cluster")]


def test_a_second_interface_comes_and_goes_with_its_hosts(shared: Shared) -> None:
    """The provider sees no difference in an interface that is left out, and Google deletes no subnetwork in use."""
    second: dict[str, Any] = {**SCHOOL, "second_nic": True}
    replaced = [(how, "NodePool school-0") for how in ("delete-replaced", "replace", "create-replacement")]
    with_second = config(CHAT, second)
    assert shared.with_config(with_second).operate("up").ok
    with_second["tpu-ray:platform"]["network"] = {"second_nics": "10.3.0.0/20"}
    moved = shared.with_config(with_second).operate("up")
    assert moved.ok, moved.failures
    done = steps(moved)
    assert set(replaced) < set(done)
    assert done.index(replaced[0]) < done.index(("delete-replaced", "Subnetwork network-second"))
    gone = shared.with_config(config(CHAT, SCHOOL)).operate("up")
    assert gone.ok, gone.failures
    assert set(steps(gone)) == {
        *replaced,
        ("delete", "Subnetwork network-second"),
        ("delete", "Network network-second"),
    }


def test_access_that_was_kept_to_some_networks_is_given_back(shared: Shared) -> None:
    """Left out of the program, the list would stay at Google, and no preview would show it."""
    open_to_all, some = config(CHAT, SCHOOL), config(CHAT, SCHOOL)
    some["tpu-ray:platform"]["cluster"]["authorized_networks"] = ["203.0.113.0/24"]
    for wanted, networks in ((some, ["203.0.113.0/24"]), (open_to_all, ["0.0.0.0/0"])):
        stack = shared.with_config(wanted)
        assert steps(stack.operate("up")) == [("update", "Cluster cluster")]
        (cluster,) = stack.things(CLUSTER).values()
        kept: Any = cluster.outputs["masterAuthorizedNetworksConfig"]
        assert [block["cidrBlock"] for block in kept["cidrBlocks"]] == networks
