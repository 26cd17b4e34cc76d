"""What the daily commands share: the stack as it is now, asked for, with every failure told in the user's words."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.names import stack_name

if TYPE_CHECKING:
    from infra.platforms.daily import Daily
    from infra.stack import StackSpec

Stack = Annotated[
    str, typer.Option("--stack", "-s", callback=stack_name, help="The stack: `local` is stacks/Pulumi.local.yaml.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON value on the standard output; progress goes to stderr.")]
INTERRUPTED = 130


@contextmanager
def asked(stack: str, as_json: bool) -> Iterator[tuple["StackSpec", "Daily"]]:
    """The stack file's content, and the stack itself.

    Ends the command with 2 where its user has to give something else, with 1 where the stack cannot be asked or does
    not do what it was asked for, with 130 on Ctrl-C.
    """
    from infra.cli.progress import say
    from infra.cli.stacks import checked_stack, project_with, refused
    from infra.platforms.errors import PlatformError
    from infra.stack import StackError

    project = project_with(stack, as_json)
    spec = checked_stack(project, stack, as_json)
    try:
        if spec.platform.kind == "local":
            from infra.platforms.local.daily import LocalDaily

            daily: Daily = LocalDaily(stack, spec)
        else:
            from infra.automation.login import login_of
            from infra.platforms.gke.daily import GkeDaily

            daily = GkeDaily(stack, spec, login_of(project, stack, spec.platform, say))
        try:
            yield spec, daily
        finally:
            daily.close()
    except StackError as error:
        raise refused("\n".join(map(str, error.problems)), error.problems, as_json) from None
    except PlatformError as error:
        raise failed(error, as_json) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def failed(error: Exception, as_json: bool) -> typer.Exit:
    """The end (code 1) of a command that could not do what it was asked for."""
    if as_json:
        typer.echo(json.dumps({"ok": False, "error": str(error)}))
    else:
        typer.echo(f"error: {error}", err=True)
    return typer.Exit(1)
