"""`tpu-ray plan`: what a stack file means in chips and dollars, alone or beside what it meant at another commit."""

import io
import json
import subprocess
import tempfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.names import stack_name

if TYPE_CHECKING:
    from rich.console import Console

    from infra.automation.project import Project
    from infra.plan.fit import HbmPlan
    from infra.plan.report import Plan
    from infra.stack import StackSpec

WIDTH = 120
"""Columns of the output where no terminal gives a width."""


def plan_command(
    stack: Annotated[
        str, typer.Option("--stack", "-s", callback=stack_name, help="The stack: `dev` is stacks/Pulumi.dev.yaml.")
    ],
    against: Annotated[
        str | None, typer.Option("--against", help="A commit, branch or tag; what the file meant there is put beside.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value on the standard output.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown for a pull request.")] = False,
) -> None:
    """Say what a stack will be: pools, chips and dollars, kept, at most and during an upgrade. Nothing is made.

    With --against, Markdown: before and after, and in bold the pools whose TPU hosts are replaced.
    """
    from infra.cli.stacks import checked_stack, project_with
    from infra.plan.against import against as compared_with
    from infra.plan.markdown import comparison_page, plan_page
    from infra.plan.report import plan
    from infra.platforms.service_changes import service_changes

    if as_json and markdown:
        raise typer.BadParameter("--json and --markdown: one of them")
    project = project_with(stack, as_json)
    spec = checked_stack(project, stack, as_json)
    today = date.today()
    if against is None:
        planned = plan(stack, spec, today)
        if as_json:
            typer.echo(planned.model_dump_json(indent=2))
        else:
            typer.echo(plan_page(planned) if markdown else shown(planned, _terminal_width()), nl=False)
        return
    before, refused = _at(project, stack, against, as_json)
    compared = compared_with(stack, against, before, spec, today, refused, service_changes(before, spec))
    if as_json:
        typer.echo(json.dumps({"ok": True, "stack": stack, **compared.model_dump(mode="json")}, indent=2))
    else:
        typer.echo(comparison_page(compared), nl=False)


def _terminal_width() -> int | None:
    """None in a pipe, and in a terminal that wants no colours."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal and not console.no_color else None


def _at(project: "Project", stack: str, ref: str, as_json: bool) -> tuple["StackSpec | None", str | None]:
    """The stack at a commit, or None and, where its file cannot be read today, why. Ends with 2 where there is no such
    commit: a comparison with nothing would call everything new."""
    from infra.cli.stacks import refused
    from infra.stack import Problem, StackError, load_stack

    file = project.stack_file(stack)
    try:
        text = file_at(ref, file)
    except GitError as error:
        problem = Problem(key="--against", value=ref, reason=str(error))
        raise refused(f"--against {ref}: {error}", [problem], as_json) from None
    if text is None:
        return None, None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        copy.write_bytes(text)
        try:
            return load_stack(copy, project.name), None
        except StackError as error:
            first = error.problems[0]
            more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
            return None, f"{first.key}: {first.reason}".replace(str(copy), str(file.name)) + more


class GitError(Exception):
    """Git knows no such commit, or there is no Git or no repository here. One sentence."""


def file_at(ref: str, file: Path) -> bytes | None:
    """The file's content at a commit; None where it is not there. Raises GitError."""
    found = _git(file.parent, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip().splitlines()
        reason = said[0].removeprefix("fatal: ") if said else "Git knows no such commit; is it fetched?"
        raise GitError(reason)
    commit = found.stdout.decode().strip()
    listed = _git(file.parent, "ls-tree", "--name-only", commit, "--", file.name)
    if not listed.stdout.strip():
        return None
    content = _git(file.parent, "show", f"{commit}:./{file.name}")
    if content.returncode:
        raise GitError(content.stderr.decode(errors="replace").strip().removeprefix("fatal: "))
    return content.stdout


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        raise GitError("there is no git on the PATH") from None


def shown(plan: "Plan", terminal_width: int | None = None) -> str:
    """The plan as tables for people: with colours in a terminal of that width, else plain text of 120 columns."""
    from rich.console import Console
    from rich.text import Text

    from infra.plan.words import price_days

    text = io.StringIO()
    console = Console(
        file=text,
        width=terminal_width or WIDTH,
        force_terminal=terminal_width is not None,
        no_color=terminal_width is None,
        highlight=False,
    )
    _tables(plan, console)
    days = price_days(plan)
    if days:
        console.print(Text(f"Prices: list prices of {days}; --json has their sources.\n"))
    for warn in plan.warnings:
        console.print(Text(f"! {warn}"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _tables(plan: "Plan", console: "Console") -> None:
    from infra.plan.words import HOURS, span, totals, usd_span

    costs = plan.platform == "gke"
    dollars = [("dollars an hour", "right")] if costs else []
    rows = [
        [
            pool.name,
            f"{pool.generation} {pool.topology}",
            pool.machine_type,
            str(pool.hosts),
            span(pool.slices.min, pool.slices.max),
            span(pool.slices.min * pool.chips_per_slice, pool.slices.max * pool.chips_per_slice),
            pool.capacity,
            *([usd_span(pool.usd_per_hour.min, pool.usd_per_hour.max)] if costs else []),
        ]
        for pool in plan.pools
    ]
    left, right = "left", "right"
    columns = [("pool", left), ("slice", left), ("machine", left), ("hosts", right), ("slices", right)]
    _table(console, [*columns, ("chips", right), ("capacity", left), *dollars], rows)
    hbm = [("HBM of a chip", "right")] if costs else []

    def of_chip(chip: "HbmPlan | None") -> list[str]:
        return [] if chip is None else [str(chip)]

    if plan.services:
        rows = [
            [
                s.name,
                s.pool,
                span(s.least_replicas, s.replicas),
                span(s.chips // s.replicas * s.least_replicas, s.chips),
                *of_chip(s.hbm),
                s.upgrade.means,
            ]
            for s in plan.services
        ]
        columns = [("service", left), ("pool", left), ("replicas", right), ("chips", right), *hbm]
        _table(console, [*columns, ("a new cluster", left)], rows)
    if plan.jobs:
        rows = [[j.name, j.run, j.pool, str(j.chips), *of_chip(j.hbm), f"{j.timeout_s:,} s"] for j in plan.jobs]
        columns = [("job", left), ("run", left), ("pool", left), ("chips", right), *hbm, ("at most", right)]
        _table(console, columns, rows)
    chips = plan.chips
    rows = [["chips", f"{chips.min:,}", f"{chips.upgrade_peak:,}", f"{chips.max:,}"]]
    if costs:
        rows += [["dollars an hour", *totals(plan)], ["dollars in 30 days", *totals(plan, HOURS)]]
    _table(console, [("total", left), ("kept", right), ("peak of an upgrade", right), ("at most", right)], rows)


def _table(console: "Console", columns: list[tuple[str, str]], rows: list[list[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
