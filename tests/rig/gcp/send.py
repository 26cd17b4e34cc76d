"""What the provider sends to Google, and what it makes of the answer."""

import json
from dataclasses import dataclass

from tests.rig.gcp.alike import DEFAULT_SCOPES
from tests.rig.gcp.catalogue import Property, ResourceType, property_at
from tests.rig.gcp.diff import Plan
from tests.rig.gcp.plan import without_marks
from tests.rig.gcp.rules import prepare
from tests.rig.gcp.settings import Settings
from tests.rig.gcp.values import (
    UNKNOWN,
    Object,
    Path,
    Secret,
    Value,
    at_path,
    plain_list,
    plain_object,
    with_path,
)

TIMEOUTS_KEY = "e2bfb730-ecaa-11e6-8f88-34363bc7c4c0"
SECRET_OUTPUTS = ("effectiveLabels", "pulumiLabels")
# Only the provider knows these: no call carries them, and no answer holds them.
CLIENT_SIDE = frozenset(
    {
        "deletionPolicy",
        "deletionProtection",
        "removeDefaultNodePool",
        "ignoreNodeCountChanges",
        "namePrefix",
        "forceDestroy",
        "disableOnDestroy",
        "disableDependentServices",
        "createIgnoreAlreadyExists",
        "deleteDefaultRoutesOnCreate",
        "sendSecondaryIpRangeIfEmpty",
        "skipNodePoolRefresh",
        "skipInitialVersionCreation",
        "minMasterVersion",
        "rollbackSafeUpgrade",
        "pulumiLabels",
    }
)


class ApplyError(Exception):
    """The provider refuses before it calls Google; the message is its own."""


def creation(kind: ResourceType, inputs: Object, planned: Object, settings: Settings) -> Object:
    """The inputs as they are sent when a resource is made, with what the provider fills in by itself.

    Raises:
        ApplyError: the provider refuses.
    """
    wanted = prepare(kind, without_marks(inputs))
    sent = {name: value for name, value in planned.items() if value is not UNKNOWN and name != "deletionPolicy"}
    sent = plain_object(_without_unknown({**sent, **wanted}))
    properties = kind.properties
    if "project" in properties and sent.get("project") is None and properties["project"].computed:
        sent["project"] = settings.project
        if settings.project is None:
            raise ApplyError("project: required field is not set")
    if "region" in properties and sent.get("region") is None:
        sent["region"] = settings.region
    if kind.tf_name in CREATIONS:
        CREATIONS[kind.tf_name](sent, settings)
    return {name: value for name, value in sent.items() if value is not None}


def _without_unknown(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _without_unknown(item) for name, item in value.items() if item is not UNKNOWN}
    if isinstance(value, list):
        return [_without_unknown(item) for item in value if item is not UNKNOWN]
    return value


def _place(sent: Object, settings: Settings) -> None:
    if sent.get("location") is None:
        if settings.location is None:
            raise ApplyError("Unable to determine location: region/zone not configured in resource/provider config")
        sent["location"] = settings.location


def _create_cluster(sent: Object, settings: Settings) -> None:
    _place(sent, settings)
    if sent.get("networkingMode") is None and sent.get("clusterIpv4Cidr") is None:
        sent["networkingMode"] = "VPC_NATIVE"
    if sent.get("location") in plain_list(sent.get("nodeLocations")):
        raise ApplyError('when using a multi-zonal cluster, node_locations should not contain the original "zone"')
    if sent.get("nodeConfig") is None and not sent.get("nodePools"):
        sent["nodeConfig"] = {"oauthScopes": list(DEFAULT_SCOPES)}


def _create_pool(sent: Object, settings: Settings) -> None:
    cluster = sent.get("cluster")
    parts = str(cluster).split("/")
    if len(parts) == 6:
        sent["project"], sent["location"], sent["cluster"] = parts[1], parts[3], parts[5]
    _place(sent, settings)
    if sent.get("nodeCount") and sent.get("initialNodeCount"):
        raise ApplyError("Cannot set both initial_node_count and node_count on node pool " + str(sent.get("name")))
    if sent.get("namePrefix") and sent.get("name"):
        raise ApplyError("Cannot specify both name and name_prefix for a node_pool")
    node = plain_object(sent.get("nodeConfig"))
    if not node.get("oauthScopes"):
        sent["nodeConfig"] = {**node, "oauthScopes": list(DEFAULT_SCOPES)}


CREATIONS = {"google_container_cluster": _create_cluster, "google_container_node_pool": _create_pool}


@dataclass(frozen=True)
class Sent:
    """An update: the top-level properties that are sent, each as a whole new value (None where it is taken away).

    `own` is what the provider holds afterwards: the plan, without what has no call.
    """

    changed: Object
    own: Object


def changes_sent(plan: Plan) -> Sent:
    """What an update sends. What has no call stays as it was: the plan shows it as an update all the same.

    Raises:
        ApplyError: the provider refuses.
    """
    new = plan.planned
    touched: set[str] = set()
    for change in plan.changes:
        if _has_call(plan, change.path):
            touched.add(str(change.path[0]))
        elif change.path[0] not in CLIENT_SIDE:
            new = with_path(new, change.path, at_path(plan.old, change.path))
    sent = {name: new.get(name) for name in sorted(touched)}
    if plan.kind.tf_name == "google_container_cluster":
        _cluster_versions(plan, sent)
    if plan.kind.labels is not None:
        sent.pop(plan.kind.labels, None)
    return Sent(sent, new)


def _has_call(plan: Plan, path: Path) -> bool:
    name = str(path[0])
    if name in CLIENT_SIDE and name != "minMasterVersion":
        return False
    fields = plan.kind.properties
    props: list[Property] = [
        prop for end in range(1, len(path) + 1) if (prop := property_at(fields, path[:end])) is not None
    ]
    decided = next((prop.update for prop in reversed(props) if prop.update is not None), None)
    if decided is False and len(path) > 1 and not props[-1].force_new and props[-1].update is None:
        # A block with no call of its own holds values that have none either.
        return False
    return decided is not False


def _cluster_versions(plan: Plan, sent: Object) -> None:
    wanted, running = sent.get("minMasterVersion"), plan.old.get("masterVersion")
    lower = isinstance(wanted, str) and isinstance(running, str) and _version(running) >= _version(wanted)
    if lower or wanted is None:
        sent.pop("minMasterVersion", None)
    if "nodeVersion" in sent:
        pools = [plain_object(pool).get("name") for pool in plain_list(plan.old.get("nodePools"))]
        if "default-pool" not in pools:
            raise ApplyError(
                "node_version was updated but default-pool was not found. To update the version for a non-default "
                "pool, use the version attribute on that pool."
            )


def _version(text: str) -> list[int]:
    parts = text.replace("-gke.", ".").split(".")
    return [int(part) if part.isdigit() else 0 for part in parts]


def read_back(kind: ResourceType, own: Object, answer: Object) -> Object:
    """A resource's outputs: what Google answers, what only the provider knows, and the program's share of labels.

    Args:
        kind: its type.
        own: what the provider holds: the plan as it was sent, or the state before a read.
        answer: the properties that Google's side has.
    """
    outputs = {name: value for name, value in own.items() if value is not UNKNOWN and not name.startswith("__")}
    outputs.update({name: value for name, value in answer.items() if name not in CLIENT_SIDE or name not in own})
    if kind.labels is not None:
        effective = plain_object(answer.get("effectiveLabels", own.get("effectiveLabels")))
        outputs["effectiveLabels"] = effective
        for name in (kind.labels, "pulumiLabels"):
            mine = plain_object(own.get(name))
            outputs[name] = {key: effective[key] for key in mine if key in effective}
    if kind.tf_name == "google_container_node_pool" and own.get("cluster") is not None:
        # It is never read: it stays as the program wrote it, a bare name or a whole id.
        outputs["cluster"] = own["cluster"]
    node = plain_object(outputs.get("nodeConfig"))
    if node:
        outputs["nodeConfig"] = _own_taints(node, plain_object(own.get("nodeConfig")))
    return {name: value for name, value in outputs.items() if value is not None}


def _own_taints(node: Object, own: Object) -> Object:
    everything = plain_list(node.get("effectiveTaints") or node.get("taints"))
    keys = [plain_object(taint).get("key") for taint in plain_list(own.get("taints"))]
    mine: list[Value] = [taint for taint in everything if plain_object(taint).get("key") in keys]
    result = {**node, "effectiveTaints": everything, "taints": mine}
    if not mine:
        del result["taints"]
    return result


def sealed(kind: ResourceType, outputs: Object, preview: bool) -> Object:
    """Outputs as the engine gets them: secrets marked, and with the bridge's `__meta`."""
    result = dict(outputs)
    for name in SECRET_OUTPUTS:
        if name in kind.properties and name in result and result[name] is not UNKNOWN:
            result[name] = Secret(result[name])
    auth = result.get("masterAuth")
    if isinstance(auth, dict) and isinstance(auth.get("clientKey"), str):
        result["masterAuth"] = {**auth, "clientKey": Secret(auth["clientKey"])}
    if not preview:
        meta: dict[str, object] = {"schema_version": str(kind.schema_version)}
        if kind.timeouts:
            meta[TIMEOUTS_KEY] = {name: _nanoseconds(text) for name, text in kind.timeouts.items()}
        result["__meta"] = json.dumps(meta, separators=(",", ":"), sort_keys=True)
    return result


def _nanoseconds(text: str) -> int:
    total, number = 0, ""
    for mark in text:
        if mark.isdigit():
            number += mark
        else:
            total += int(number) * {"h": 3600, "m": 60, "s": 1}[mark]
            number = ""
    return total * 10**9


def inputs_after_read(kind: ResourceType, inputs: Object, outputs: Object) -> Object:
    """A program's inputs with the values that were read; for an import, all that a program could have set."""
    if inputs:
        return {name: _refreshed(value, outputs.get(name)) for name, value in inputs.items()}
    return {
        name: value
        for name, value in outputs.items()
        if (prop := kind.properties.get(name)) is not None and not prop.output_only and name not in SECRET_OUTPUTS
    }


def _refreshed(value: Value, read: Value) -> Value:
    if read is None:
        return value
    if isinstance(value, dict) and isinstance(read, dict):
        return {
            name: item if name.startswith("__") else _refreshed(item, read.get(name)) for name, item in value.items()
        }
    return value if isinstance(value, list) and isinstance(read, list) and len(value) == len(read) else read


def refuse_delete(kind: ResourceType, id: str, state: Object) -> bool:
    """Whether Google is to be called at all.

    Raises:
        ApplyError: the state protects the resource.
    """
    policy = state.get("deletionPolicy")
    if policy == "PREVENT":
        raise ApplyError(f'cannot destroy "{id}" without setting deletion_policy="DELETE" and running `pulumi up`')
    if policy == "ABANDON":
        return False
    if kind.tf_name == "google_container_cluster" and state.get("deletionProtection", True) is not False:
        raise ApplyError(
            "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with "
            "cluster deletion."
        )
    return True
