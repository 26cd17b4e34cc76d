"""Names that the provider makes: `<logical name>-<7 hexadecimal digits>`."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal

from tests.rig.gcp.catalogue import Autoname

DIGITS = 7


class NamingError(ValueError):
    """No name can be made; the message is the bridge's."""


@dataclass(frozen=True)
class Proposal:
    """A name that the engine's own autonaming proposes, and how strictly."""

    name: str
    mode: Literal["propose", "enforce", "disable"]


def make_name(rule: Autoname, token: str, logical: str, seed: bytes, proposal: Proposal | None = None) -> str:
    """A name for a resource; the same seed gives the same name.

    Raises:
        NamingError: it would be too long, or the engine's autonaming is off.
    """
    if proposal is not None:
        return _proposed(rule, proposal)
    stem = (logical.lower() if rule.lower else logical) + "-"
    if len(stem) + DIGITS > rule.longest:
        raise NamingError(
            f"could not make instance of '{token}': name '{stem}' plus {DIGITS} random chars is longer than maximum "
            f"length {rule.longest}"
        )
    digest = hashlib.sha256(seed + stem.encode()).hexdigest() if seed else secrets.token_hex(DIGITS)
    return stem + digest[:DIGITS]


def _proposed(rule: Autoname, proposal: Proposal) -> str:
    if proposal.mode == "disable":
        raise NamingError("automatic naming is disabled but no explicit name was provided")
    if proposal.mode == "enforce":
        return proposal.name
    name = proposal.name.lower() if rule.lower else proposal.name
    if len(name) > rule.longest:
        raise NamingError(f"calculated name '{name}' exceeds maximum length of {rule.longest}")
    return name
