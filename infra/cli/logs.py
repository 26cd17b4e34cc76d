"""`tpu-ray logs`: what a service's replicas or a job's run write."""

from typing import Annotated

import typer

from infra.cli.asked import Stack, asked


def logs_command(
    name: Annotated[str, typer.Argument(help="A service, a job or a run; `service/x` or `job/x` where both are x.")],
    stack: Stack,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, to the run's end.")] = False,
    lines: Annotated[int, typer.Option("--lines", min=1, max=100000, help="How many of the last lines.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Each line as a JSON object: source, line.")] = False,
) -> None:
    """Show the log of a service's replicas or of a run. Ctrl-C ends a following, and nothing else."""
    from infra.platforms.daily import named

    with asked(stack, as_json) as (spec, daily):
        meant = named(spec, daily.runs(), name)
        if meant.kind == "service":
            found = daily.service_log(meant.name, lines, follow)
        else:
            found = daily.run_log(meant.name, lines, follow)
        source = ""
        for line in found:
            if as_json:
                typer.echo(line.model_dump_json())
                continue
            if line.source != source:
                # As `tail` does for several files.
                typer.echo(f"==> {line.source} <==", err=True)
                source = line.source
            typer.echo(line.line)
        if not source and not as_json:
            typer.echo(f"{meant.kind} {meant.name} has written nothing", err=True)
