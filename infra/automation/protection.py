"""A stack that is protected is not destroyed, not even in part."""

import re
from collections.abc import Sequence

from pulumi import automation as auto

from infra.automation.watch import Failure, resource_name

_REFUSED = re.compile(r"cannot be deleted\s+because it is protected|currently marked for protection")


def in_own_words(failures: Sequence[Failure], stack_name: str) -> list[Failure]:
    """The failures, where those of protected resources are told once, with the key that protects them."""
    refused = [one.resource for one in failures if _REFUSED.search(one.reason)]
    if not refused:
        return list(failures)
    told = Failure(
        "",
        "tpu-ray:platform.cluster.deletion_protection was true at the last `up`, so these are neither deleted nor "
        f"replaced: {', '.join(refused)}\nnext: take this edit back, write false, `tpu-ray up -s {stack_name}`, then "
        "make the edit again",
    )
    return [told, *(one for one in failures if one.resource not in refused)]


def protected(stack: auto.Stack, stack_name: str) -> Failure | None:
    """Why the stack cannot be destroyed; None where nothing of it is protected.

    Pulumi would begin, and refuse each protected resource when its turn comes; what is not protected would be gone by
    then, and GKE's flag guards the cluster alone, not its node pools.
    """
    resources = (stack.export_stack().deployment or {}).get("resources") or []
    kept = [resource_name(one["urn"]) for one in resources if one.get("protect")]
    if not kept:
        return None
    names = ", ".join(name for name in kept if name.startswith(("Cluster ", "NodePool "))) or kept[0]
    return Failure(
        "",
        f"tpu-ray:platform.cluster.deletion_protection was true when stack {stack_name} was brought up, so nothing "
        f"is deleted: {names}\n"
        f"next: write false, `tpu-ray up -s {stack_name}`, then `tpu-ray destroy -s {stack_name}`",
    )
