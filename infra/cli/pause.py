"""`tpu-ray pause|resume`: a service to zero slices and back."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.asked import INTERRUPTED, Json, Stack, failed

if TYPE_CHECKING:
    from infra.automation.project import Project
    from infra.stack import GkePlatform, StackSpec

Service = Annotated[str, typer.Argument(help="The service.")]


def pause_command(service: Service, stack: Stack, as_json: Json = False) -> None:
    """End a service and give its slices back. Its URL stays its own, and does not answer until `resume`.

    Writes `paused: true` into the stack file, so that no `up` brings it back, and brings that up: the service alone,
    whatever else the file says. Exit codes as of `up`.
    """
    _write_and_up(service, stack, as_json, paused=True)


def resume_command(service: Service, stack: Stack, as_json: Json = False) -> None:
    """Bring a paused service back, as the stack file has it now, and wait until it answers at its URL.

    Takes `paused` out of the stack file. Exit codes as of `up`.
    """
    _write_and_up(service, stack, as_json, paused=False)


def _write_and_up(service: str, stack: str, as_json: bool, paused: bool) -> None:
    from infra.automation.operate import operate
    from infra.automation.watch import Watch
    from infra.cli.interrupt import terminated_as_interrupted
    from infra.cli.outcome import print_outcome
    from infra.cli.progress import Progress
    from infra.cli.stacks import as_dict, checked_stack, project_with, refused
    from infra.platforms.daily import service_named
    from infra.platforms.errors import PlatformError
    from infra.platforms.paused import resources_of
    from infra.stack import GkePlatform, StackError
    from infra.stack.paused import write_paused

    project = project_with(stack, as_json)
    spec = checked_stack(project, stack, as_json)
    progress = Progress()
    try:
        service_named(spec, service)
        if write_paused(project.stack_file(stack), service, paused, project.name):
            word = "says `paused: true`" if paused else "no longer says `paused: true`"
            progress.say(f"{project.stack_file(stack)} {word} of service {service}")
    except StackError as error:
        raise refused("\n".join(map(str, error.problems)), error.problems, as_json) from None
    declared = next(one for one in spec.services if one.name == service)
    only = resources_of(stack, project.name, spec.platform.kind, declared)
    watch = Watch(progress.say)
    try:
        with progress.showing(watch), terminated_as_interrupted():
            outcome = operate(project, stack, "up", progress.say, watch, only)
        if paused and outcome.ok and isinstance(spec.platform, GkePlatform):
            wait_until_given_back(project, stack, spec.platform, service, progress.say)
    except PlatformError as error:
        raise failed(error, as_json) from None
    except KeyboardInterrupt:
        progress.say(f"interrupted; `tpu-ray {'pause' if paused else 'resume'} {service} -s {stack}` goes on from here")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(as_dict(outcome), indent=2))
    elif not outcome.ok:
        print_outcome(outcome)
    elif paused:
        typer.echo(f"service {service} is paused; `tpu-ray resume {service} -s {stack}` brings it back")
        for line in still_billed(spec, service):
            typer.echo(line)
    else:
        endpoints = outcome.outputs.get("endpoints")
        typer.echo(f"service {service} answers: {endpoints.get(service) if isinstance(endpoints, dict) else ''}")
    raise typer.Exit(0 if outcome.ok else 1)


def wait_until_given_back(
    project: "Project", stack: str, platform: "GkePlatform", service: str, say: Callable[[str], None]
) -> None:
    """Wait for the end of the service's pods, which is some time after that of what made them.

    Raises:
        PlatformError: they do not end, or cannot be asked for.
    """
    from infra.automation.login import login_of
    from infra.platforms.gke.pausing import wait_until_no_pods
    from infra.platforms.gke.ready_resource import log_in

    login = login_of(project, stack, platform, say)
    if login is None:
        return
    kubernetes = log_in({"login": login, "context": platform.cluster.context})
    try:
        wait_until_no_pods(kubernetes, platform.namespace, service, say)
    finally:
        kubernetes.close()


def still_billed(stack: "StackSpec", service: str) -> list[str]:
    """What a pause does not save: slices that the pool keeps."""
    pool = stack.pool(next(one.pool for one in stack.services if one.name == service))
    if stack.platform.kind == "local" or not pool.slices.min:
        return []
    kept = f"{pool.slices.min} slice{'s' if pool.slices.min > 1 else ''}"
    return [
        f"pool {pool.name} keeps {kept}, free now and billed all the same; with "
        f"`slices: {{min: 0, max: {pool.slices.max}}}` they go when nothing runs on them"
    ]
