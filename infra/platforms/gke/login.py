"""The user's own kubeconfig: read, and looked at before anything is made."""

from pathlib import Path

import pulumi
import yaml

from infra.stack import Problem, StackError
from workloads.spec.nearest import nearest

KEY = "tpu-ray:platform.cluster"


def read_kubeconfig(file: str, context: str | None) -> str:
    """The text of the file.

    Raises:
        pulumi.RunError: it cannot be read, is no kubeconfig, or does not have the context.
    """
    try:
        text = Path(file).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise stop(Problem(key=f"{KEY}.kubeconfig", value=file, reason=f"the file cannot be read: {reason}")) from None
    if problem := kubeconfig_problem(file, text, context):
        raise stop(problem)
    return text


def stop(*problems: Problem) -> pulumi.RunError:
    """The error that ends the program with these mistakes, and without a traceback."""
    return pulumi.RunError(str(StackError(problems)))


def kubeconfig_problem(file: str, text: str, context: str | None) -> Problem | None:
    """What is wrong with the text of a kubeconfig, of which nothing is shown: there are credentials in it."""
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict) or not isinstance(config.get("contexts"), list):
        reason = "this is no kubeconfig: a mapping with clusters, users and contexts"
        return Problem(key=f"{KEY}.kubeconfig", value=file, reason=reason)
    contexts = tuple(str(one["name"]) for one in config["contexts"] if isinstance(one, dict) and "name" in one)
    current = config.get("current-context")
    if context is not None and context not in contexts:
        reason = f"{file} has no context of this name"
        close = nearest(context, contexts)
        return Problem(key=f"{KEY}.context", value=context, reason=reason, allowed=contexts, nearest=close)
    if context is None and current not in contexts:
        reason = f"{file} has no current context; name one of its contexts here"
        return Problem(key=f"{KEY}.context", reason=reason, allowed=contexts, nearest=next(iter(contexts), None))
    return None
