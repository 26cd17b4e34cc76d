"""The name of a stack as a command takes it."""

import re

import typer

# https://www.pulumi.com/docs/iac/concepts/stacks/#create-stack; a dot in front would name a folder above.
PATTERN = r"[A-Za-z0-9_][-_.A-Za-z0-9]{0,99}"


def stack_name(value: str) -> str:
    """`value`, when a stack may be called so: names become parts of paths, and `..` must not lead out of a folder.

    Raises:
        typer.BadParameter: it may not; the command ends with 2.
    """
    if not re.fullmatch(PATTERN, value):
        raise typer.BadParameter(f"{value!r}: a stack's name has letters, digits, and - _ . behind the first of them")
    return value
