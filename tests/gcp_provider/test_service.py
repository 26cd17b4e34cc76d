"""The provider over gRPC: what the engine gets, and what Google is sent."""

import time

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.status_pb2 import Status

from tests.gcp_provider.conftest import CLUSTER, POOL, Engine, urn
from tests.rig.gcp.values import UNKNOWN, Object, read_struct, write_struct

SMALL_POOL: Object = {
    "cluster": "projects/proj/locations/us-east5-b/clusters/c",
    "nodeCount": 4,
    "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
    "nodeConfig": {"machineType": "ct6e-standard-4t", "spot": True},
}


def refusal(error: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    """What the engine would show."""
    assert isinstance(error.value, grpc.Call)
    return str(error.value.details())


def test_a_name_is_made_once_and_kept(engine: Engine) -> None:
    first = engine.check(POOL, "tpu", SMALL_POOL)
    assert str(first["name"]).startswith("tpu-")
    assert len(str(first["name"])) == len("tpu-") + 7
    assert first["__defaults"] == ["name"]
    assert engine.check(POOL, "tpu", SMALL_POOL, first)["name"] == first["name"]


def test_defaults_are_marked_at_every_object_and_false_ones_are_not_written(engine: Engine) -> None:
    checked = engine.check(POOL, "tpu", {**SMALL_POOL, "management": {}, "upgradeSettings": {"maxSurge": 1}})
    assert checked["management"] == {
        "autoRepair": True,
        "autoUpgrade": True,
        "__defaults": ["autoRepair", "autoUpgrade"],
    }
    assert checked["upgradeSettings"] == {"maxSurge": 1, "strategy": "SURGE", "__defaults": ["strategy"]}
    node = checked["nodeConfig"]
    assert isinstance(node, dict)
    assert node["__defaults"] == []


@pytest.mark.parametrize(
    ("token", "name", "inputs", "reason"),
    [
        (POOL, "tpu", {}, "Missing required property 'cluster'"),
        (
            POOL,
            "tpu",
            {"cluster": "c", "nodeConfig": {"machine": "a"}},
            "Invalid or unknown key. Examine values at 'tpu.nodeConfig.machine'.",
        ),
        (
            "gcp:compute/network:Network",
            "n" * 56,
            {},
            f"name '{'n' * 56}-' plus 7 random chars is longer than maximum length 63",
        ),
        (
            "gcp:serviceaccount/account:Account",
            "a-service-account-of-23",
            {},
            "name 'a-service-account-of-23-' plus 7 random chars is longer than maximum length 30",
        ),
        (
            CLUSTER,
            "c",
            {"enableAutopilot": True, "removeDefaultNodePool": True},
            '"remove_default_node_pool": conflicts with enable_autopilot. Examine values at \'c.',
        ),
        (CLUSTER, "c", {"endpoint": "1.2.3.4"}, "Value for unconfigurable attribute"),
        (CLUSTER, "c", {"name": "C_"}, '"name" can only contain lowercase letters, numbers and hyphens'),
    ],
)
def test_check_refuses_in_the_providers_words(
    engine: Engine, token: str, name: str, inputs: Object, reason: str
) -> None:
    failures = [failure.reason for failure in engine.ask_check(token, name, inputs).failures]
    assert any(reason in failure for failure in failures), failures


def test_a_preview_knows_the_project_and_the_labels_and_nothing_that_gke_fills_in(engine: Engine) -> None:
    _, pool = engine.create(POOL, "tpu", engine.check(POOL, "tpu", SMALL_POOL), preview=True)
    assert pool["project"] == "proj"
    assert pool["deletionPolicy"] == "DELETE"
    assert pool["version"] is UNKNOWN
    _, cluster = engine.create(CLUSTER, "c", engine.check(CLUSTER, "c", {"resourceLabels": {"x": "y"}}), preview=True)
    assert cluster["project"] is UNKNOWN
    assert cluster["endpoint"] is UNKNOWN
    assert cluster["pulumiLabels"] == {"team": "a", "goog-pulumi-provisioned": "true", "x": "y"}
    assert engine.cloud.calls == []


def test_what_is_made_has_no_difference(engine: Engine) -> None:
    inputs = engine.check(POOL, "tpu", SMALL_POOL)
    _, state = engine.create(POOL, "tpu", inputs)
    answer = engine.diff(POOL, "tpu", engine.check(POOL, "tpu", SMALL_POOL, inputs), state)
    assert dict(answer.detailedDiff) == {}
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_a_pool_without_scopes_is_made_with_the_default_six(engine: Engine) -> None:
    engine.create(POOL, "tpu", engine.check(POOL, "tpu", SMALL_POOL))
    sent = engine.cloud.calls[0][2]
    assert isinstance(sent, dict)
    node = sent["nodeConfig"]
    assert isinstance(node, dict)
    scopes = node["oauthScopes"]
    assert isinstance(scopes, list)
    assert len(scopes) == 6
    assert (sent["project"], sent["location"], sent["cluster"]) == ("proj", "us-east5-b", "c")


def test_a_topology_edit_is_an_update_that_sends_nothing_and_comes_back(engine: Engine) -> None:
    inputs = engine.check(POOL, "tpu", SMALL_POOL)
    id, state = engine.create(POOL, "tpu", inputs)
    edited: Object = {**inputs, "placementPolicy": {"type": "COMPACT", "tpuTopology": "8x8"}}
    assert list(engine.diff(POOL, "tpu", edited, state).detailedDiff) == ["placementPolicy.tpuTopology"]
    after = engine.update(POOL, "tpu", id, edited, state)
    assert [verb for verb, _, _ in engine.cloud.calls] == ["create"]
    assert after["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert list(engine.diff(POOL, "tpu", edited, after).detailedDiff) == ["placementPolicy.tpuTopology"]


def test_an_update_sends_only_what_changed(engine: Engine) -> None:
    inputs = engine.check(POOL, "tpu", SMALL_POOL)
    id, state = engine.create(POOL, "tpu", inputs)
    maintenance: Object = {"maintenancePolicies": [{"exclusionUntilEndOfSupport": {"enabled": True}}]}
    engine.update(POOL, "tpu", id, {**inputs, **maintenance, "nodeCount": 8}, state)
    assert engine.cloud.calls[-1] == ("update", POOL, {"nodeCount": 8})


def test_a_lower_minimum_version_and_a_switch_of_the_provider_send_nothing(engine: Engine) -> None:
    inputs = engine.check(CLUSTER, "c", {"deletionProtection": False})
    id, state = engine.create(CLUSTER, "c", inputs)
    after = engine.update(CLUSTER, "c", id, {**inputs, "minMasterVersion": "1.33", "deletionProtection": True}, state)
    assert [verb for verb, _, _ in engine.cloud.calls] == ["create"]
    assert after["deletionProtection"] is True
    assert after["minMasterVersion"] == "1.33"


def test_a_protected_cluster_is_not_deleted(engine: Engine) -> None:
    id, state = engine.create(CLUSTER, "c", engine.check(CLUSTER, "c", {}))
    with pytest.raises(grpc.RpcError) as error:
        engine.delete(CLUSTER, "c", id, state)
    assert "Cannot destroy cluster because deletion_protection is set to true." in refusal(error)
    engine.delete(CLUSTER, "c", id, {**state, "deletionProtection": False})
    assert [verb for verb, _, _ in engine.cloud.calls] == ["create", "delete"]


@pytest.mark.parametrize(("policy", "calls"), [("PREVENT", ["create"]), ("ABANDON", ["create"])])
def test_a_deletion_policy_keeps_google_out_of_it(engine: Engine, policy: str, calls: list[str]) -> None:
    inputs = engine.check(POOL, "tpu", {**SMALL_POOL, "deletionPolicy": policy})
    id, state = engine.create(POOL, "tpu", inputs)
    if policy == "PREVENT":
        with pytest.raises(grpc.RpcError) as error:
            engine.delete(POOL, "tpu", id, state)
        assert 'without setting deletion_policy="DELETE"' in refusal(error)
    else:
        engine.delete(POOL, "tpu", id, state)
    assert [verb for verb, _, _ in engine.cloud.calls] == calls


def test_a_pool_with_both_counts_passes_the_preview_and_fails_the_creation(engine: Engine) -> None:
    inputs = engine.check(POOL, "tpu", {**SMALL_POOL, "initialNodeCount": 1})
    engine.create(POOL, "tpu", inputs, preview=True)
    with pytest.raises(grpc.RpcError) as error:
        engine.create(POOL, "tpu", inputs)
    assert "Cannot set both initial_node_count and node_count" in refusal(error)


def test_googles_refusal_is_passed_on(engine: Engine) -> None:
    with pytest.raises(grpc.RpcError) as error:
        engine.create(POOL, "tpu", engine.check(POOL, "tpu", {**SMALL_POOL, "name": "refused"}))
    assert "googleapi: Error 400: no" in refusal(error)


def test_a_broken_pool_stays_in_the_state(engine: Engine) -> None:
    with pytest.raises(grpc.RpcError) as error:
        engine.create(POOL, "tpu", engine.check(POOL, "tpu", {**SMALL_POOL, "name": "broken"}))
    assert isinstance(error.value, grpc.Call)
    trailing = {str(key): value for key, value in error.value.trailing_metadata() or ()}
    status = Status.FromString(bytes(trailing["grpc-status-details-bin"]))
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    assert detail.id == "NodePool/broken"
    assert "googleapi: GCE_STOCKOUT" in detail.reasons[0]
    assert read_struct(detail.properties)["version"] == "1.34.1-gke.1"


def test_a_read_of_something_gone_has_no_id(engine: Engine) -> None:
    answer = engine.stub.Read(provider_pb2.ReadRequest(urn=urn(POOL, "tpu"), id="gone"))
    assert answer.id == ""


def test_a_read_keeps_only_the_taints_that_the_program_named(engine: Engine) -> None:
    id, state = engine.create(POOL, "tpu", engine.check(POOL, "tpu", SMALL_POOL))
    node = engine.cloud.things[id]["nodeConfig"]
    assert isinstance(node, dict)
    taint: Object = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
    engine.cloud.things[id] = {**engine.cloud.things[id], "nodeConfig": {**node, "taints": [taint]}}
    answer = engine.stub.Read(provider_pb2.ReadRequest(urn=urn(POOL, "tpu"), id=id, properties=write_struct(state)))
    read = read_struct(answer.properties)["nodeConfig"]
    assert isinstance(read, dict)
    assert "taints" not in read
    assert read["effectiveTaints"] == [taint]


def test_the_client_configuration_has_the_providers_place_and_a_secret_token(engine: Engine) -> None:
    answer = engine.stub.Invoke(provider_pb2.InvokeRequest(tok="gcp:organizations/getClientConfig:getClientConfig"))
    fields = getattr(answer, "return").fields
    assert fields["project"].string_value == "proj"
    assert fields["zone"].string_value == "us-east5-b"
    assert fields["accessToken"].struct_value.fields["value"].string_value == "t0k3n"


def test_a_hundred_pools_are_previewed_in_a_moment(engine: Engine) -> None:
    inputs = engine.check(POOL, "tpu", SMALL_POOL)
    _, state = engine.create(POOL, "tpu", inputs)
    began = time.monotonic()
    for _ in range(100):
        engine.diff(POOL, "tpu", engine.check(POOL, "tpu", SMALL_POOL, inputs), state)
    took = time.monotonic() - began
    print(f"100 x Check + Diff: {took:.2f} s")
    assert took < 10
