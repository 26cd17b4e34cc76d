"""`tpu-ray check FILE`: everything that is wrong with a stack file, before anything is started or paid."""

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from infra.stack import StackError, StackSpec, load_stack

WRONG = 2
"""Exit code for a stack file with mistakes in it."""


def check_command(
    file: Annotated[Path, typer.Argument(help="The stack file, e.g. stacks/Pulumi.local.yaml.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="The mistakes as a JSON list; [] where there are none.")] = False,
) -> None:
    """Say everything that is wrong with a stack file. Exit code 0: right, 2: wrong."""
    try:
        stack = load_stack(file)
    except StackError as error:
        if json:
            typer.echo(json_text.dumps([problem.model_dump(mode="json") for problem in error.problems], indent=2))
        else:
            typer.echo(f"{file}: {error}", err=True)
        raise typer.Exit(WRONG) from None
    typer.echo("[]" if json else f"{file}: {summary(stack)}")


def summary(stack: StackSpec) -> str:
    """One line: how much a stack is, every pool at its largest."""
    counts = (
        _count(len(stack.pools), "pool"),
        _count(len(stack.services), "service"),
        _count(len(stack.jobs), "job"),
        _count(stack.chips, "chip"),
    )
    return f"right; platform {stack.platform.kind}, " + ", ".join(counts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
