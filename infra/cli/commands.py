"""The list of commands, and what happens to an error that none of them foresaw."""

import contextlib
import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from infra.cli.check import check_command
from infra.cli.logs import logs_command
from infra.cli.pause import pause_command, resume_command
from infra.cli.plan import plan_command
from infra.cli.render import render_command
from infra.cli.setup import env_command, setup_command
from infra.cli.slices import slices_command
from infra.cli.stacks import destroy_command, preview_command, refresh_command, up_command
from infra.cli.status import status_command
from infra.cli.submit import submit_command


class LateGroup(TyperGroup):
    """A group whose sub-application is imported when one of its commands is asked for."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in ("local", "jobs"):
            module = importlib.import_module(f"infra.cli.{cmd_name}")
            command = typer.main.get_command(module.app)
            command.name = cmd_name
            return command
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), "jobs", "local"]


app = typer.Typer(
    cls=LateGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="TPU slices, models and training jobs from one stack file.",
)
app.command("up")(up_command)
app.command("preview")(preview_command)
app.command("refresh")(refresh_command)
app.command("destroy")(destroy_command)
app.command("check")(check_command)
app.command("plan")(plan_command)
app.command("slices")(slices_command)
app.command("render")(render_command)
app.command("setup")(setup_command)
app.command("env")(env_command)
app.command("status")(status_command)
app.command("logs")(logs_command)
app.command("pause")(pause_command)
app.command("resume")(resume_command)
app.command("submit", context_settings={"allow_extra_args": True})(submit_command)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tpu-ray {version('tpu-ray')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """TPU slices, models and training jobs from one stack file."""


def main() -> None:
    """Entry point of the console script.

    A folder that cannot be written or a full disk is the user's to mend: one line and exit code 1, no traceback.
    """
    try:
        app()
    except OSError as error:
        if not error.strerror:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        with contextlib.suppress(OSError):  # It may be the error stream itself that is broken.
            typer.echo(f"error: {where}{error.strerror}", err=True)
        sys.exit(1)
