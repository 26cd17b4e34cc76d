"""What the provider checks about one value, told from the message that it gives (`validation` in the data)."""

import ipaddress
import re
from collections.abc import Callable
from datetime import datetime

from tests.rig.gcp.catalogue import Property
from tests.rig.gcp.values import Value

MEMBER = re.compile(
    r"^(allUsers|allAuthenticatedUsers|projectOwners|projectReaders|projectWriters|"
    r"(user|serviceAccount|group|domain|projectOwner|projectEditor|projectViewer|principal|principalSet|[a-zA-Z]+):.+)$"
)
ACCOUNT_ID = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")


def refusals(prop: Property, value: Value, tf_path: str) -> list[str]:
    """The provider's messages about a primitive value; `tf_path` as Terraform writes it, `node_config.0.spot`."""
    found: list[str] = []
    if isinstance(value, str):
        if prop.enum and value not in prop.enum and (value or prop.empty_refused):
            allowed = " ".join(f'"{word}"' for word in prop.enum)
            found.append(f"expected {tf_path} to be one of [{allowed}], got {value}")
        found.extend(_pattern(prop, value, tf_path))
        found.extend(_by_message(prop, value, tf_path))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        found.extend(_number(prop, value, tf_path))
    return found


def _number(prop: Property, value: float, tf_path: str) -> list[str]:
    if prop.least is not None and prop.most is not None and not prop.least <= value <= prop.most:
        return [f"expected {tf_path} to be in the range ({prop.least} - {prop.most}), got {value}"]
    if prop.least is not None and value < prop.least:
        return [f"expected {tf_path} to be at least ({prop.least}), got {value}"]
    if prop.most is not None and value > prop.most:
        return [f"expected {tf_path} to be at most ({prop.most}), got {value}"]
    if "range (0.000000 - 1.000000)" in prop.validation and not 0 <= value <= 1:
        return [f"expected {tf_path} to be in the range (0.000000 - 1.000000), got {value:f}"]
    if "RFC6996" in prop.validation and not _private_asn(value):
        return [_message(prop.validation, tf_path, str(value)).replace("987654321012", str(value))]
    return []


def _pattern(prop: Property, value: str, tf_path: str) -> list[str]:
    if not prop.pattern:
        return []
    pattern = prop.pattern.replace("\\\\", "\\")
    if re.search(pattern, value):
        return []
    return [f'"{tf_path}" ("{value}") doesn\'t match regexp "{pattern}"']


def _by_message(prop: Property, value: str, tf_path: str) -> list[str]:
    if prop.name == "accountId" and not 6 <= len(value) <= 30:
        return [f'"{tf_path}" ("{value}") must be between 6 and 30 characters long']
    if prop.name == "member" and value.startswith("deleted:"):
        return [f"invalid value for {tf_path} (Terraform does not support IAM members with the deleted: prefix)"]
    if "lowercase letters, numbers and hyphens" in prop.validation:
        return _cluster_name(value, tf_path)
    for mark, good in CHECKS.items():
        if mark in prop.validation:
            return [] if good(value) else [_message(prop.validation, tf_path, value)]
    return []


def _message(template: str, tf_path: str, value: str) -> str:
    return template.replace("<value>", tf_path).replace("<bad>", value)


def _cluster_name(value: str, tf_path: str) -> list[str]:
    found = []
    if not re.fullmatch(r"[a-z0-9-]*", value):
        found.append(f'"{tf_path}" can only contain lowercase letters, numbers and hyphens')
    if not re.match(r"[a-z]", value):
        found.append(f'"{tf_path}" must start with a letter')
    if not re.search(r"[a-z0-9]$", value):
        found.append(f'"{tf_path}" must end with a number or a letter')
    return found


def _network(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


def _network_or_size(value: str) -> bool:
    return value == "" or re.fullmatch(r"/\d{1,2}", value) is not None or _network(value)


def _moment(value: str) -> bool:
    try:
        datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return False
    return "T" in value and re.search(r"(Z|[+-]\d\d:\d\d)$", value) is not None


def _private_asn(value: float) -> bool:
    return 64512 <= value <= 65534 or 4200000000 <= value <= 4294967294 or value == 16550


CHECKS: dict[str, Callable[[str], bool]] = {
    "valid IP CIDR range": _network,
    "to be a valid CIDR Value": _network,
    "to contain a valid Value": _network_or_size,
    "major.minor": lambda value: re.fullmatch(r"\d+\.\d+", value) is not None,
    "HH:mm": lambda value: re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value) is not None,
    "HH:00": lambda value: re.fullmatch(r"([01]\d|2[0-3]):00", value) is not None,
    "parsing time": _moment,
    "not a valid duration": lambda value: re.fullmatch(r"(\d+(\.\d+)?(h|ms|m|s))+", value) is not None,
    "must match regex": lambda value: ACCOUNT_ID.match(value) is not None,
    "IAM members must have": lambda value: MEMBER.match(value) is not None,
    "allowlist path": lambda value: value.startswith(("gke://", "gs://")),
    "to be a domain like": lambda value: re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", value) is not None,
    "rotation period": lambda value: re.fullmatch(r"[0-9]+(\.[0-9]{1,9})?s", value) is not None,
}
