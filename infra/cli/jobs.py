"""`tpu-ray jobs list|stop`: the runs of a stack."""

import json
from typing import Annotated

import typer

from infra.cli.asked import Json, Stack, asked

app = typer.Typer(help="The runs of a stack's jobs, and those that were submitted.", no_args_is_help=True)
STOP_S = 300


@app.command("list")
def list_command(stack: Stack, as_json: Json = False) -> None:
    """List the runs: of the stack file's jobs, then those that were submitted."""
    from infra.cli.status import reasons, runs_table

    with asked(stack, as_json) as (_, daily):
        runs = daily.runs()
        if as_json:
            typer.echo(json.dumps([run.model_dump(mode="json") for run in runs], indent=2))
        else:
            typer.echo("\n".join([runs_table(runs).lstrip("\n"), *reasons(runs)]) if runs else "no runs")


@app.command("stop")
def stop_command(
    name: Annotated[str, typer.Argument(help="A job or a run.")],
    stack: Stack,
    timeout_s: Annotated[int, typer.Option("--timeout", min=1, help="How long its end may take, in seconds.")] = STOP_S,
    as_json: Json = False,
) -> None:
    """End a run and give its slice back. `up` does not start it again; a new `run:` in the stack file does.

    Exit code 0: the run is over, whoever ended it. 1: it could not be ended in time.
    """
    from infra.cli.progress import say
    from infra.platforms.daily import run_named

    with asked(stack, as_json) as (_, daily):
        run = daily.stop(run_named(daily.runs(), name), say, timeout_s)
        typer.echo(run.model_dump_json(indent=2) if as_json else f"run {run.run} is {run.state}")
