"""`tpu-ray setup` gets the Pulumi CLI; `tpu-ray env` prints what a shell needs to use it by hand."""

import shlex
from typing import Annotated

import typer

from infra.cli.names import stack_name
from infra.cli.progress import say


def setup_command() -> None:
    """Get everything `up` needs that is not a Python package: the Pulumi CLI, and a backend where you have none."""
    from infra.automation.project import ProjectNotFound, find_project
    from infra.pulumi_cli import CliNotFound, choose_backend, obtain_cli

    try:
        project = find_project()
        cli = obtain_cli(say)
    except (CliNotFound, ProjectNotFound) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    backend = choose_backend(project.root)
    typer.echo(f"pulumi {cli.version} ({cli.source}: {cli.bin_dir})")
    kept = "on this machine, you are logged in nowhere" if backend.own else "where you are logged in"
    typer.echo(f"state: {backend.where} ({kept})")


def _stack_or_none(value: str) -> str:
    return stack_name(value) if value else value


def env_command(
    stack: Annotated[
        str,
        typer.Option(
            "--stack", "-s", callback=_stack_or_none, help="Also TPU_RAY_STACK_FILE, for `pulumi --config-file`."
        ),
    ] = "",
    shell: Annotated[bool, typer.Option("--shell/--json", help="Lines for a POSIX shell, or one JSON object.")] = True,
) -> None:
    """Print the environment for plain `pulumi`: eval "$(.venv/bin/tpu-ray env)"."""
    import json

    from infra.automation.workspace import process_environment, working_file
    from infra.cli.stacks import project_with
    from infra.pulumi_cli import choose_backend, find_cli

    project = project_with(stack, as_json=not shell)
    cli, refused = find_cli()
    if cli is None:
        typer.echo("there is no Pulumi CLI yet; run `tpu-ray setup`", err=True)
        for reason in refused:
            typer.echo(f"  {reason}", err=True)
        raise typer.Exit(1)
    backend = choose_backend(project.root)
    environment = process_environment(cli, backend)
    if stack:
        environment["TPU_RAY_STACK_FILE"] = str(working_file(project, backend, stack))
    if not shell:
        typer.echo(json.dumps(environment, indent=2))
        return
    if backend.own is not None:
        typer.echo("# Plain pulumi writes the stack file anew, with the salt of this machine's stack (encryptionsalt),")
        typer.echo("# which is of no use elsewhere. With `env -s STACK` and `pulumi --config-file $TPU_RAY_STACK_FILE`")
        typer.echo("# it writes to a copy. tpu-ray itself never writes to your file.")
        typer.echo("unset PULUMI_CONFIG_PASSPHRASE")
    for name, value in environment.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
