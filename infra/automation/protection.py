"""A stack that is protected is not destroyed, not even in part."""

from pulumi import automation as auto

from infra.automation.watch import Failure, resource_name


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
