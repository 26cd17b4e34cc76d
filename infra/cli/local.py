"""`tpu-ray local start|status|stop`: a stack's emulated cluster, without Pulumi."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.cli.names import stack_name
from infra.cli.stacks import refused
from infra.platforms.errors import PlatformError
from infra.platforms.local import cluster
from infra.platforms.local.folders import Folders
from infra.platforms.local.spec import ClusterSpec
from infra.stack import StackError, load_stack

app = typer.Typer(help="The emulated slices of a `local` stack, without Pulumi.", no_args_is_help=True)

StackName = Annotated[str, typer.Option("--stack", "-s", callback=stack_name, help="Name of the stack.")]
StackFile = Annotated[Path | None, typer.Option("--file", "-f", help="Stack file; default stacks/Pulumi.<stack>.yaml.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON value on the standard output.")]


@app.command()
def start(stack: StackName = "local", file: StackFile = None, as_json: AsJson = False) -> None:
    """Start the cluster: Ray's head and one Ray node per host. Services and jobs are left to `tpu-ray up`."""
    path = file or Path("stacks") / f"Pulumi.{stack}.yaml"
    try:
        spec = ClusterSpec.of(stack, load_stack(path))
        cluster.start(spec, _say)
    except StackError as error:
        raise refused(f"{path}: {error}", error.problems, as_json) from None
    except ValueError as error:
        _fail(error, as_json, code=2)
    except PlatformError as error:
        _fail(error, as_json, code=1)
    _show(stack, as_json)


@app.command()
def status(stack: StackName = "local", as_json: AsJson = False) -> None:
    """Show what runs. Exit code 0 where every process lives, 3 where there is no cluster, 4 where it is dead."""
    try:
        _show(stack, as_json)
        now = cluster.status(stack)
    except PlatformError as error:
        _fail(error, as_json, code=1)
    if not now.alive:
        raise typer.Exit(3 if now.state is None else 4)


@app.command()
def stop(stack: StackName = "local", as_json: AsJson = False) -> None:
    """End the cluster and remove all its files, checkpoints and exported models included."""
    try:
        stopped = cluster.stop(stack, _say)
    except PlatformError as error:
        _fail(error, as_json, code=1)
    typer.echo(
        json.dumps({"stopped": stopped}) if as_json else f"stack {stack}: {'ended' if stopped else 'no cluster'}"
    )


def _show(stack: str, as_json: bool) -> None:
    now = cluster.status(stack)
    if as_json:
        typer.echo(json.dumps(_facts(stack, now)))
    elif now.state is None:
        typer.echo(f"stack {stack}: no cluster")
    else:
        word = "alive" if now.alive else f"dead, gone: {', '.join(now.dead)}"
        typer.echo(f"stack {stack}: {word}; {len(now.state.spec.hosts)} hosts; dashboard {now.state.dashboard}")
        typer.echo(f"  to use it: export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={Folders.of(stack).token_file}")


def _facts(stack: str, now: cluster.Status) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "stack": stack,
        "exists": now.state is not None,
        "alive": now.alive,
        "dead": list(now.dead),
    }
    if now.state is not None:
        folders = Folders.of(stack)
        facts |= {
            "dashboard": now.state.dashboard,
            "address": now.state.gcs_address,
            "http_port": now.state.spec.http_port,
            "session": now.state.session,
            "state_folder": str(folders.root),
            "token_file": str(folders.token_file),
            "nodes": [
                {"role": node.role, "pid": node.identity.pid, "address": node.address, "alive": node.identity.alive()}
                for node in now.state.nodes
            ],
        }
    return facts


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _fail(error: Exception, as_json: bool, code: int) -> None:
    if as_json:
        typer.echo(json.dumps({"error": str(error)}))
    else:
        typer.echo(f"error: {error}", err=True)
    raise typer.Exit(code)
