"""What the provider adds to a plan beyond the schema (Terraform's customizeDiff), resource by resource."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.rig.gcp.catalogue import ResourceType
from tests.rig.gcp.settings import ATTRIBUTION, Settings
from tests.rig.gcp.values import UNKNOWN, Object, Path, at_path, is_zero, plain_list, plain_object

NO_PROJECT_IN_PLAN = (
    "gcp:container/cluster:Cluster",
    "gcp:storage/bucket:Bucket",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
)
REGION_IN_PLAN = ("gcp:compute/resourcePolicy:ResourcePolicy",)


class PlanError(Exception):
    """The provider refuses to plan; the message is its own."""


@dataclass
class Draft:
    """A plan in the making.

    `wanted` are the inputs, `old` is the state (empty when the resource is made), `planned` what it will be. Rules
    change `planned` and put paths into `forced` whose change replaces the resource.
    """

    kind: ResourceType
    wanted: Object
    old: Object
    planned: Object
    settings: Settings
    creating: bool
    forced: set[Path] = field(default_factory=set)

    def turned_off(self, name: str) -> bool:
        """Whether a switch that is on in the state will be off."""
        return self.old.get(name) is True and not self.planned.get(name)


def prepare(kind: ResourceType, wanted: Object) -> Object:
    """The inputs as the provider reads them: accelerators of which there are none are none."""
    if kind.tf_name != "google_container_node_pool":
        return wanted
    node = plain_object(wanted.get("nodeConfig"))
    if "guestAccelerators" not in node:
        return wanted
    kept = [item for item in plain_list(node["guestAccelerators"]) if plain_object(item).get("count") != 0]
    return {**wanted, "nodeConfig": {**node, "guestAccelerators": kept}}


def apply_rules(draft: Draft) -> None:
    """All rules for a resource.

    Raises:
        PlanError: the plan is refused.
    """
    _deletion_policy(draft)
    _project(draft)
    if draft.kind.labels is not None:
        _labels(draft, draft.kind.labels)
    rule = RULES.get(draft.kind.tf_name)
    if rule is not None:
        rule(draft)


def _deletion_policy(draft: Draft) -> None:
    if "deletionPolicy" in draft.kind.properties and draft.wanted.get("deletionPolicy") is None:
        draft.planned["deletionPolicy"] = draft.settings.deletion_policy


def _project(draft: Draft) -> None:
    prop = draft.kind.properties.get("project")
    if (
        prop is not None
        and prop.computed
        and draft.kind.token not in NO_PROJECT_IN_PLAN
        and draft.wanted.get("project") is None
        and draft.settings.project is not None
    ):
        draft.planned["project"] = draft.settings.project
    if draft.kind.token in REGION_IN_PLAN and draft.wanted.get("region") is None and draft.creating:
        draft.planned["region"] = draft.settings.region or UNKNOWN


def _labels(draft: Draft, name: str) -> None:
    labels = draft.wanted.get(name)
    old_own = plain_object(draft.old.get("pulumiLabels"))
    if labels is UNKNOWN or any(value is UNKNOWN for value in plain_object(labels).values()):
        draft.planned["pulumiLabels"] = draft.planned["effectiveLabels"] = UNKNOWN
        return
    own: Object = dict(draft.settings.default_labels)
    attributed = draft.settings.attribution and (draft.creating or draft.settings.attribution_always)
    if attributed or ATTRIBUTION.keys() <= old_own.keys():
        own.update(ATTRIBUTION)
    own.update(plain_object(labels))
    effective = {
        key: value
        for key, value in plain_object(draft.old.get("effectiveLabels")).items()
        if key in own or key not in old_own
    }
    effective.update(own)
    for key, value in (("pulumiLabels", own), ("effectiveLabels", effective)):
        draft.planned[key] = draft.old[key] if key in draft.old and draft.old[key] == value else value


def _node_pool(draft: Draft) -> None:
    if draft.planned.get("ignoreNodeCountChanges") and not draft.creating and "nodeCount" in draft.old:
        draft.planned["nodeCount"] = draft.old["nodeCount"]
    list_path: Path = ("networkConfig", "additionalNodeNetworkConfigs")
    profile_path: Path = ("networkConfig", "acceleratorNetworkProfile")
    old_profile = at_path(draft.old, profile_path)
    network = draft.planned.get("networkConfig")
    if (
        isinstance(network, dict)
        and not draft.creating
        and is_zero(at_path(draft.wanted, list_path))
        and not is_zero(at_path(draft.old, list_path))
        and not is_zero(old_profile)
        and at_path(draft.wanted, profile_path) != old_profile
    ):
        draft.planned["networkConfig"] = {k: v for k, v in network.items() if k != "additionalNodeNetworkConfigs"}


def _cluster(draft: Draft) -> None:
    wanted, planned, old = draft.wanted, draft.planned, draft.old
    for name in ("enableL4IlbSubsetting", "enableFqdnNetworkPolicy"):
        if draft.turned_off(name):
            draft.forced.add((name,))
    if planned.get("enableAutopilot") is True and old.get("enableAutopilot") is not True:
        planned["enableIntranodeVisibility"] = True
        planned["networkingMode"] = "VPC_NATIVE"
    dns: Path = ("dnsConfig", "additiveVpcScopeDnsDomain")
    if old.get("enableAutopilot") is True and at_path(old, dns) != at_path(planned, dns):
        draft.forced.add(dns)
    if old.get("autopilotPrivilegedAdmissions") and not wanted.get("autopilotPrivilegedAdmissions"):
        planned["autopilotPrivilegedAdmissions"] = ["gke://*"]
    apis: Path = ("enableK8sBetaApis", "enabledApis")
    kept = plain_list(at_path(planned, apis))
    dropped = [index for index, api in enumerate(plain_list(at_path(old, apis))) if api not in kept]
    draft.forced.update((*apis, index) for index in dropped)
    if dropped and planned.get("enableK8sBetaApis") is None:
        draft.forced.add(("enableK8sBetaApis",))
    _cluster_refusals(draft)


def _cluster_refusals(draft: Draft) -> None:
    wanted = draft.wanted
    node, master = wanted.get("nodeVersion"), wanted.get("minMasterVersion")
    if draft.creating and isinstance(node, str):
        if wanted.get("removeDefaultNodePool"):
            raise PlanError("node_version can only be specified if remove_default_node_pool is not true")
        if isinstance(master, str) and re.sub(r"-gke\.\d+$", "", node) != re.sub(r"-gke\.\d+$", "", master):
            raise PlanError(
                f"Resource argument node_version (value: {node}) must either be unset or set to the same value as "
                f"min_master_version (value: {master}) on create."
            )
    if wanted.get("skipNodePoolRefresh") and wanted.get("nodePools"):
        raise PlanError("skip_node_pool_refresh cannot be used with inline node pools")
    upgrade = plain_object(at_path(wanted, ("clusterAutoscaling", "autoProvisioningDefaults", "upgradeSettings")))
    surge = upgrade.get("maxSurge") or upgrade.get("maxUnavailable")
    if surge and upgrade.get("strategy") not in ("SURGE", None, UNKNOWN):
        raise PlanError("Surge upgrade settings max_surge/max_unavailable can only be used when strategy is SURGE")


def _subnetwork(draft: Draft) -> None:
    old, new = draft.old.get("ipCidrRange"), draft.planned.get("ipCidrRange")
    if isinstance(old, str) and isinstance(new, str) and old != new and not _contains(new, old):
        draft.forced.add(("ipCidrRange",))
    if (
        draft.planned.get("sendSecondaryIpRangeIfEmpty")
        and not draft.creating
        and not draft.wanted.get("secondaryIpRanges")
    ):
        draft.planned.pop("secondaryIpRanges", None)


def _contains(outer: str, inner: str) -> bool:
    wide, narrow = ipaddress.ip_network(outer, strict=False), ipaddress.ip_network(inner, strict=False)
    if isinstance(wide, ipaddress.IPv4Network) and isinstance(narrow, ipaddress.IPv4Network):
        return narrow.subnet_of(wide)
    return False


def _router(draft: Draft) -> None:
    bgp = plain_object(draft.planned.get("bgp"))
    advertised = bgp.get("advertisedGroups") or bgp.get("advertisedIpRanges")
    if bgp.get("advertiseMode") == "DEFAULT" and advertised:
        raise PlanError("Error in bgp: advertised_groups and advertised_ip_ranges need advertise_mode CUSTOM")


def _router_nat(draft: Draft) -> None:
    if draft.creating and draft.wanted.get("drainNatIps"):
        raise PlanError("New RouterNat cannot have drain_nat_ips")


def _bucket(draft: Draft) -> None:
    location = draft.planned.get("location")
    if isinstance(location, str):
        draft.planned["location"] = location.upper()
    locked: Path = ("retentionPolicy", "isLocked")
    if at_path(draft.old, locked) is True and at_path(draft.planned, locked) is not True:
        draft.forced.update([locked, ("retentionPolicy",)])


def _account(draft: Draft) -> None:
    account, project = draft.planned.get("accountId"), draft.planned.get("project")
    if isinstance(account, str) and isinstance(project, str):
        email = f"{account}@{project}.iam.gserviceaccount.com"
        draft.planned["email"] = email
        draft.planned["member"] = f"serviceAccount:{email}"
    elif draft.old.get("accountId") != account or draft.old.get("project") != project:
        draft.planned["email"] = draft.planned["member"] = UNKNOWN


RULES: dict[str, Callable[[Draft], None]] = {
    "google_container_node_pool": _node_pool,
    "google_container_cluster": _cluster,
    "google_compute_subnetwork": _subnetwork,
    "google_compute_router": _router,
    "google_compute_router_nat": _router_nat,
    "google_storage_bucket": _bucket,
    "google_service_account": _account,
}
