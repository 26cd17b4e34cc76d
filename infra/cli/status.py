"""`tpu-ray status`: what there is of a stack, now."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from infra.cli.asked import Json, Stack, asked

if TYPE_CHECKING:
    from infra.platforms.state_seen import PoolSeen, RunSeen, ServiceSeen, StackSeen

WIDTH = 120
"""Columns where no terminal gives a width."""


def status_command(stack: Stack, as_json: Json = False) -> None:
    """Show what there is: slices, services with the reason why one is not ready, runs.

    Exit code 0: all is as declared. 3: nothing is up. 4: a service is not ready, or a job's run has failed. 1: the
    stack cannot be asked.
    """
    with asked(stack, as_json) as (_, daily):
        seen = daily.see()
        typer.echo(seen.model_dump_json(indent=2) if as_json else shown(seen))
        raise typer.Exit(seen.exit_code)


def shown(seen: "StackSeen") -> str:
    """The stack as text for people."""
    if not seen.up:
        head = f"stack {seen.stack} is not up: {seen.reason}"
    else:
        head = f"stack {seen.stack} on {seen.platform}" + (f": {seen.reason}" if seen.reason else "")
    parts = [head]
    if seen.pools:
        rows = [
            (pool.name, f"{pool.generation} {pool.topology}", str(pool.slices_there), wanted_slices(pool))
            for pool in seen.pools
        ]
        parts.append(table(("pool", "slice", "there", "wanted"), rows, wide=1))
    if seen.services:
        services = [(one.name, one.pool, one.state, wanted_replicas(one), one.url) for one in seen.services]
        parts.append(table(("service", "pool", "state", "replicas", "url"), services, wide=4))
        parts += reasons(seen.services) if seen.up else []
    if seen.jobs:
        parts.append(runs_table(seen.jobs))
        parts += reasons(seen.jobs) if seen.up else []
    return "\n".join(parts)


def runs_table(runs: Sequence["RunSeen"]) -> str:
    """The runs as a table; without one where there are none."""
    rows = [(one.name, one.run, one.pool, one.state + (" *" if one.submitted else ""), one.progress) for one in runs]
    text = table(("job", "run", "pool", "state", "progress"), rows, wide=1)
    return f"{text}\n* submitted, not of the stack file" if any(one.submitted for one in runs) else text


def reasons(seen: Sequence["ServiceSeen | RunSeen"]) -> list[str]:
    """`name: reason`, for all that have one."""
    lines = []
    for one in seen:
        if one.reason:
            first, *more = one.reason.splitlines()
            lines += [f"  {one.name}: {first}", *(f"    {line.strip()}" for line in more)]
    return lines


def wanted_slices(pool: "PoolSeen") -> str:
    """`1`, or `0 to 2` where slices come on demand."""
    least, most = pool.slices_min, pool.slices_max
    return str(most) if least == most else f"{least} to {most}"


def wanted_replicas(service: "ServiceSeen") -> str:
    """Ready ones and wanted ones: `1/2`, or `2/1 to 3` where replicas come and go."""
    least, most = service.replicas_wanted, service.replicas_most
    return f"{service.replicas_ready}/{least}" + (f" to {most}" if most is not None and most > least else "")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], wide: int) -> str:
    """A table without a frame; only the column `wide` is folded where the terminal is narrow."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = Console()
    made = Table(box=None, pad_edge=False, show_edge=False, header_style="")
    for number, heading in enumerate(columns):
        made.add_column(heading.upper(), overflow="fold", no_wrap=number != wide)
    for row in rows:
        made.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=terminal.width if terminal.is_terminal else WIDTH, highlight=False).print(made)
    return "\n" + "\n".join(line.rstrip() for line in text.getvalue().splitlines())
