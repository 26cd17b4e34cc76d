"""How the daily commands log in to a stack's cluster: with the user's own kubeconfig, else as the last `up` did."""

import json
from collections.abc import Callable
from pathlib import Path

from pulumi import automation as auto

from infra.automation.project import Project
from infra.automation.unreadable import explained
from infra.automation.watch import command_failure
from infra.automation.workspace import open_stack
from infra.platforms.errors import PlatformError
from infra.platforms.gke.login import KEY, kubeconfig_problem
from infra.pulumi_cli import CliNotFound
from infra.stack import GkePlatform, Problem, StackError

CLUSTERS = ("tpu-ray:index:Cluster", "tpu-ray:index:ExistingCluster")
"""Components whose outputs hold a kubeconfig: no credentials, only how to get some. It is there as soon as the cluster
is, also where the rest of the `up` failed."""


def login_of(project: Project, stack_name: str, platform: GkePlatform, say: Callable[[str], None]) -> str | None:
    """The path of the user's own kubeconfig, else the text of one; None where the stack has no cluster yet.

    Raises:
        StackError: the user's own cannot be read, or has not the context.
        PlatformError: the stack's state cannot be read.
    """
    wanted = platform.cluster
    if wanted.kubeconfig:
        return _own(wanted.kubeconfig, wanted.context)
    try:
        stack = open_stack(project, stack_name, say, create=False)
        resources = (stack.export_stack().deployment or {}).get("resources") or []
    except auto.StackNotFoundError:
        return None
    except CliNotFound as error:
        raise PlatformError(str(error)) from None
    except (auto.CommandError, auto.InvalidVersionError) as error:
        failure = explained(command_failure(error), project, stack_name)
        raise PlatformError(f"the state of stack {stack_name} cannot be read", found=failure.reason) from None
    found = [_plain((one.get("outputs") or {}).get("kubeconfig")) for one in resources if one.get("type") in CLUSTERS]
    return next((text for text in found if text is not None), None)


def _plain(output: object) -> str | None:
    """A text of an exported state: Google's provider calls a cluster's certificate a secret, and all that is made of it
    is one."""
    if isinstance(output, dict) and isinstance(output.get("plaintext"), str):
        output = json.loads(output["plaintext"])
    return output if isinstance(output, str) else None


def _own(file: str, context: str | None) -> str:
    try:
        text = Path(file).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or "it is no text"
        problem = Problem(key=f"{KEY}.kubeconfig", value=file, reason=f"the file cannot be read: {reason}")
        raise StackError([problem]) from None
    if found := kubeconfig_problem(file, text, context):
        raise StackError([found])
    return file
