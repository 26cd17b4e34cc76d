"""`tpu-ray up | preview | refresh | destroy`: one stack, through the Automation API."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.names import stack_name

if TYPE_CHECKING:
    from infra.automation.operate import Operation, Outcome
    from infra.automation.project import Project
    from infra.automation.watch import Failure
    from infra.stack import Problem, StackSpec

Stack = Annotated[
    str, typer.Option("--stack", "-s", callback=stack_name, help="The stack: `local` is stacks/Pulumi.local.yaml.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object; progress goes to stderr.")]


def up_command(stack: Stack, as_json: Json = False) -> None:
    """Bring the stack up, and wait until its services answer."""
    raise typer.Exit(run("up", stack, as_json))


def preview_command(
    stack: Stack,
    as_json: Json = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with 1 where anything would change.")
    ] = False,
) -> None:
    """Show what `up` would do."""
    raise typer.Exit(run("preview", stack, as_json, expect_no_changes))


def refresh_command(stack: Stack, as_json: Json = False) -> None:
    """Look at what is really there and write it into the stack's state."""
    raise typer.Exit(run("refresh", stack, as_json))


def destroy_command(stack: Stack, as_json: Json = False) -> None:
    """End and delete everything the stack made."""
    raise typer.Exit(run("destroy", stack, as_json))


def run(operation: "Operation", stack: str, as_json: bool, expect_no_changes: bool = False) -> int:
    """Check the stack file, run the operation, print the result. Exit codes: 0 done, 1 failed, 2 the file is wrong."""
    ends = operation in ("refresh", "destroy")
    project = project_with("" if ends else stack, as_json)
    known = project.stack_file(stack).is_file()
    if not ends:
        checked_stack(project, stack, as_json)

    from infra.automation.operate import operate
    from infra.automation.watch import Watch
    from infra.cli.interrupt import terminated_as_interrupted
    from infra.cli.outcome import print_outcome
    from infra.cli.progress import Progress

    progress = Progress()
    if ends and known:
        warn(project, stack, progress.say)
    watch = Watch(progress.say, steps=operation != "preview", looks=operation == "refresh")
    try:
        with progress.showing(watch), terminated_as_interrupted():
            outcome = operate(project, stack, operation, progress.say, watch)
            if operation == "destroy" and outcome.ok:
                outcome = replace(outcome, failures=end_leftovers(stack, progress.say))
    except KeyboardInterrupt:
        progress.say(f"interrupted; `tpu-ray {operation} -s {stack}` goes on from here")
        return 130
    if not (outcome.found or known):
        project_with(stack, as_json)
    if as_json:
        typer.echo(json.dumps(as_dict(outcome), indent=2))
    else:
        print_outcome(outcome)
    if not outcome.ok:
        return 1
    return 1 if expect_no_changes and outcome.changed else 0


def checked_stack(project: "Project", stack: str, as_json: bool) -> "StackSpec":
    """The stack's content; ends with 2 and the problems that `check` names where the file is wrong."""
    from infra.stack import StackError, load_stack

    file = project.stack_file(stack)
    try:
        return load_stack(file, project.name)
    except StackError as error:
        raise refused(f"{file}: {error}", error.problems, as_json) from None


def warn(project: "Project", stack: str, say: Callable[[str], None]) -> None:
    """Tell the mistakes of a stack file without ending: what the stack made can be ended whatever its file says now."""
    from infra.stack import StackError, load_stack

    try:
        load_stack(project.stack_file(stack), project.name)
    except StackError as error:
        say(f"{project.stack_file(stack)}: {error}")
        say("going on all the same, with what is in the stack's state")


def end_leftovers(stack: str, say: Callable[[str], None]) -> tuple["Failure", ...]:
    """End a local cluster that Pulumi does not know, as an `up` leaves it that was killed while it made it."""
    from infra.automation.watch import Failure
    from infra.platforms.errors import PlatformError
    from infra.platforms.local import cluster

    try:
        cluster.status(stack)
    except PlatformError:
        return ()  # It is another checkout's, and stays.
    try:
        cluster.stop(stack, say)
    except PlatformError as error:
        return (Failure("", str(error)),)
    return ()


def project_with(stack: str = "", as_json: bool = False) -> "Project":
    """The checkout's project; ends with 2 where it, or the file of the stack that is named, is missing."""
    from infra.automation.project import ProjectNotFound, find_project
    from infra.stack import Problem
    from workloads.spec.nearest import nearest

    try:
        project = find_project()
    except ProjectNotFound as error:
        raise refused(str(error), [Problem(key="Pulumi.yaml", reason=str(error))], as_json) from None
    if stack and not project.stack_file(stack).is_file():
        known = project.stacks()
        near = nearest(stack, known)
        reason = f"there is no {project.stack_file(stack)}"
        said = f"--stack {stack}: {reason}; there are: {', '.join(known) or 'none'}"
        said += f". Nearest: {near}" if near else ""
        problem = Problem(key="--stack", value=stack, reason=reason, allowed=known, nearest=near)
        raise refused(said, [problem], as_json)
    return project


def refused(said: str, problems: Iterable["Problem"], as_json: bool) -> typer.Exit:
    """The end (code 2) of a command that its user has to give something else; told as JSON or in words."""
    if as_json:
        found = [problem.model_dump(mode="json") for problem in problems]
        typer.echo(json.dumps({"ok": False, "problems": found}, indent=2))
    else:
        typer.echo(said, err=True)
    return typer.Exit(2)


def as_dict(outcome: "Outcome") -> dict[str, object]:
    """The outcome as `--json` prints it."""
    return {"ok": outcome.ok, **asdict(outcome)}
