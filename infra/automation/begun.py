"""What a killed run had begun: Pulumi keeps it as pending in the state, and asks for a repair by hand from then on."""

from collections.abc import Callable

from pulumi import automation as auto

OURS = ("pulumi-python:dynamic/", "pulumi:providers:pulumi-python")
"""Types whose resources the next run finds as they are, or makes anew. Others may be left in a cloud, unknown."""


def forget_begun(stack: auto.Stack, say: Callable[[str], None]) -> None:
    """Take what was begun from the state where all of it is our own; the run that follows looks at it anyway.

    Raises:
        CommandError: the backend refuses, for example because another run holds the stack.
    """
    exported = stack.export_stack()
    begun = (exported.deployment or {}).get("pending_operations") or []
    if begun and all(operation["resource"]["type"].startswith(OURS) for operation in begun):
        say("the last run was interrupted; what it had begun is looked at again")
        # A state that is imported is taken without its pending operations.
        stack.import_stack(exported)
