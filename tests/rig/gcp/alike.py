"""Differences that the provider does not take for one (Terraform's diff suppression), by the provider's own name.

The names `init` and `ResourceStorageBucket` stand for closures whose code is not in the source data: those are plain
comparisons here.
"""

import re
from collections.abc import Callable
from datetime import timedelta

from tests.rig.gcp.values import Object, Unknown, Value, is_zero, plain_list, plain_object

DEFAULT_SCOPES = [
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
    "https://www.googleapis.com/auth/service.management.readonly",
    "https://www.googleapis.com/auth/servicecontrol",
    "https://www.googleapis.com/auth/trace.append",
]
SCOPE_ADDED_BY_SERVER = "https://www.googleapis.com/auth/monitoring.write"
DEFAULT_STRINGS = ("IPV4", "EXTERNAL", "AUTH_NONE")


def same_name(old: Value, new: Value) -> bool:
    """A self link, a relative path and a bare name of one resource."""
    if not isinstance(old, str) or not isinstance(new, str):
        return old == new
    if "/" in old and "/" in new:
        return same_relative_path(old, new)
    return old.rsplit("/", 1)[-1] == new.rsplit("/", 1)[-1]


def same_relative_path(old: Value, new: Value) -> bool:
    """A self link and the relative path in it."""
    return _relative(old) == _relative(new)


def _relative(link: Value) -> Value:
    if not isinstance(link, str):
        return link
    return re.sub(r"^https?://[^/]+/(compute/|networkconnectivity/)?[^/]+/(?=projects/)", "", link)


def same_last_part(old: Value, new: Value) -> bool:
    """`projects/p` and `p`."""
    return isinstance(old, str) and isinstance(new, str) and old.rsplit("/", 1)[-1] == new.rsplit("/", 1)[-1]


def same_but_case(old: Value, new: Value) -> bool:
    """Words that differ in case only."""
    return isinstance(old, str) and isinstance(new, str) and old.lower() == new.lower()


def same_or_default(old: Value, new: Value) -> bool:
    """Nothing, and the word that stands for the default."""
    filled = [value for value in (old, new) if not is_zero(value)]
    return len(filled) == 1 and isinstance(filled[0], str) and _is_default(filled[0])


def _is_default(word: str) -> bool:
    return word.endswith("UNSPECIFIED") or word in DEFAULT_STRINGS


def same_member(old: Value, new: Value) -> bool:
    """An IAM member's e-mail has no case; its kind, and a principal's path, have."""
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    if old.startswith("principal") or new.startswith("principal"):
        return old == new
    old_kind, _, old_rest = old.partition(":")
    new_kind, _, new_rest = new.partition(":")
    return old_kind == new_kind and old_rest.lower() == new_rest.lower()


def same_bucket(old: Value, new: Value) -> bool:
    """`b/NAME` and `NAME`."""
    return isinstance(old, str) and isinstance(new, str) and old.removeprefix("b/") == new.removeprefix("b/")


def same_range_or_size(old: Value, new: Value) -> bool:
    """`/14`, asked for, and the range of that size that was given."""
    return isinstance(old, str) and isinstance(new, str) and new.startswith("/") and old.endswith(new)


def same_scopes(old: Value, new: Value) -> bool:
    """The scope that the server adds by itself is none."""
    wanted = {str(scope) for scope in plain_list(new)}
    return {str(scope) for scope in plain_list(old)} - wanted <= {SCOPE_ADDED_BY_SERVER} and wanted <= {
        str(scope) for scope in plain_list(old)
    }


def same_duration(old: Value, new: Value) -> bool:
    """`3600s` and `1h`."""
    return _duration(old) is not None and _duration(old) == _duration(new)


def _duration(text: Value) -> timedelta | None:
    if not isinstance(text, str) or not re.fullmatch(r"([0-9.]+(d|h|ms|m|s))+", text):
        return None
    units = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
    parts = re.findall(r"([0-9.]+)(d|h|ms|m|s)", text)
    return sum((timedelta(**{units[unit]: float(number)}) for number, unit in parts), timedelta())


def same_time_of_day(old: Value, new: Value) -> bool:
    """`03:00` and `3:00`."""
    return isinstance(old, str) and isinstance(new, str) and old.zfill(5) == new.zfill(5)


def same_recurrence(old: Value, new: Value) -> bool:
    """A recurrence rule with its parts in any order."""
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return sorted(old.removeprefix("RRULE:").split(";")) == sorted(new.removeprefix("RRULE:").split(";"))


def off_and_gone(old: Value, new: Value) -> bool:
    """A block whose every value is off or unspecified, and no block."""
    return new is None and all(
        is_zero(value) or (isinstance(value, str) and _is_default(value)) for value in plain_object(old).values()
    )


def off_private_cluster(old: Value, new: Value) -> bool:
    """A private cluster block with neither private nodes nor a private endpoint, and none."""
    block = plain_object(old)
    return (
        isinstance(old, dict)
        and new is None
        and not block.get("enablePrivateNodes")
        and not block.get("enablePrivateEndpoint")
    )


def open_to_all(old: Value, new: Value) -> bool:
    """No source range, and the one that the server then fills in."""
    return new is None and plain_list(old) == ["0.0.0.0/0"]


SUPPRESS: dict[str, Callable[[Value, Value], bool]] = {
    "CompareSelfLinkOrResourceName": same_name,
    "CompareSelfLinkRelativePaths": same_relative_path,
    "CompareResourceNames": same_last_part,
    "CompareProjectName": same_last_part,
    "kmsCryptoKeyRingsEquivalent": same_relative_path,
    "AddressIpCollectionDiffSuppress": same_relative_path,
    "CaseDiffSuppress": same_but_case,
    "iamMemberCaseDiffSuppress": same_member,
    "StorageBucketDiffSuppress": same_bucket,
    "CidrOrSizeDiffSuppress": same_range_or_size,
    "containerClusterAddedScopesSuppress": same_scopes,
    "DurationDiffSuppress": same_duration,
    "durationDiffSuppress": same_duration,
    "Rfc3339TimeDiffSuppress": same_time_of_day,
    "HourlyFormatSuppressDiff": same_time_of_day,
    "rfc5545RecurrenceDiffSuppress": same_recurrence,
    "containerClusterNetworkPolicyDiffSuppress": off_and_gone,
    "BinaryAuthorizationDiffSuppress": off_and_gone,
    "SecretManagerCfgSuppress": off_and_gone,
    "SecretSyncCfgSuppress": off_and_gone,
    "podSecurityPolicyCfgSuppress": off_and_gone,
    "hierachicalNamespaceDiffSuppress": off_and_gone,
    "emptyMavenConfigDiffSuppress": off_and_gone,
    "containerClusterPrivateClusterConfigSuppress": off_private_cluster,
    "diffSuppressSourceRanges": open_to_all,
}


def suppressed(rule: str, old: Value, new: Value) -> bool:
    """Whether the provider takes the two for the same."""
    if isinstance(new, Unknown):
        return False
    if rule.endswith("EmptyOrDefaultStringSuppress"):
        return same_or_default(old, new)
    found = SUPPRESS.get(rule)
    return found is not None and found(old, new)


def kept_resource_labels(old: Value, new: Value) -> Object:
    """A pool's resource labels as planned: the program's, and those that GKE put there (`goog-gke...`)."""
    own = {key: value for key, value in plain_object(old).items() if key.startswith("goog-gke")}
    return {**own, **plain_object(new)}
