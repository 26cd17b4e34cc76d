"""`tpu-ray submit`: the code of the working directory, on a slice of a pool."""

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.asked import INTERRUPTED, Json, Stack, asked

if TYPE_CHECKING:
    from infra.platforms.daily import Daily

WAIT_S, TIMEOUT_S = 900, 86400
NAME = r"[a-z]([-a-z0-9]{0,33}[a-z0-9])?"
"""A DNS-1035 label of at most 35 characters: a RayJob's name on a slice of several hosts."""


def submit_command(
    context: typer.Context,
    stack: Stack,
    pool: Annotated[str, typer.Option("--pool", "-p", help="The pool whose slice it runs on.")],
    name: Annotated[str, typer.Option("--name", "-n", help="Its id; absent: made from the command.")] = "",
    driver: Annotated[
        bool,
        typer.Option("--driver", help="Run it once, as a driver beside Ray's head, which asks for slices itself."),
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not follow its log.")] = False,
    wait_s: Annotated[int, typer.Option("--wait", min=1, help="How long it waits for a slice, in seconds.")] = WAIT_S,
    timeout_s: Annotated[
        int, typer.Option("--timeout", min=1, help="How long it may take, waiting included, in seconds.")
    ] = TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Run a command on every host of a slice, with the working directory's files: submit -p POOL -- python my.py.

    Follows its output; the exit code is the command's. Ctrl-C leaves it running.
    """
    from infra.cli.progress import say
    from infra.platforms.daily import Submission, pool_named
    from infra.platforms.working_directory import packed
    from workloads.spec.submitted import SubmittedLaunch

    command = tuple(context.args)
    if not command:
        raise typer.BadParameter("behind -- stands the command, e.g. -- python my.py")
    if name and not re.fullmatch(NAME, name):
        raise typer.BadParameter(f"--name {name}: lower-case letters, digits and -, at most 35, a letter first")
    with asked(stack, as_json) as (spec, daily):
        shape = spec.pool(pool_named(spec, pool)).slice
        run_name = free_name(daily, name, command)
        package = packed(Path.cwd())
        say(f"{run_name}: {len(package) / 2**20:.1f} MiB of {Path.cwd()}")
        launch = SubmittedLaunch(
            name=run_name,
            command=command,
            slice=shape,
            pool=pool,
            reserve_timeout_s=min(wait_s, timeout_s),
            timeout_s=timeout_s,
        )
        run = daily.submit(Submission(launch, package, driver), say, min(wait_s, timeout_s))
        if detach:
            typer.echo(run.model_dump_json(indent=2) if as_json else run_name)
            return
        if not as_json:
            typer.echo(run_name)
        raise typer.Exit(followed(daily, run_name, stack, as_json))


def followed(daily: "Daily", run_name: str, stack: str, as_json: bool) -> int:
    """Show the output of a run to its end; the exit code. With JSON the output goes to stderr, the run to stdout."""
    from infra.cli.progress import say

    try:
        for line in daily.run_log(run_name, 100000, follow=True):
            typer.echo(line.line, err=as_json)
    except KeyboardInterrupt:
        say(f"\n{run_name} goes on. Its log: `tpu-ray logs -f {run_name} -s {stack}`")
        say(f"Its end: `tpu-ray jobs stop {run_name} -s {stack}`")
        return INTERRUPTED
    run = daily.result(run_name)
    if as_json:
        typer.echo(run.model_dump_json(indent=2))
    elif run.state != "succeeded":
        say(f"{run_name} is {run.state}{': ' + run.reason if run.reason else ''}")
    if run.state == "succeeded":
        return 0
    return run.exit_code if run.exit_code and 0 < run.exit_code < 256 else 1


def free_name(daily: "Daily", name: str, command: tuple[str, ...]) -> str:
    """The name that was asked for, or one made from the command's script.

    Raises:
        StackError: a run has it already.
    """
    from infra.stack import Problem, StackError

    if not name:
        script = next((word for word in command if word.endswith(".py")), command[0])
        stem = re.sub(r"[^a-z0-9]+", "-", Path(script).stem.lower()).strip("-")[:24].strip("-")
        return f"{stem if stem[:1].isalpha() else 'run'}-{secrets.token_hex(3)}"
    if any(name == run.run for run in daily.runs()):
        raise StackError([Problem(key="--name", value=name, reason="a run of this name is there already")])
    return name
