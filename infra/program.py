"""From Pulumi's configuration to a platform's resources; the one function that every way of running the stack calls."""

import json
from collections.abc import Mapping

import pulumi
from pulumi.runtime.config import CONFIG, is_config_secret

from infra.stack import StackError, StackSpec, parse_stack

PROJECT = "tpu-ray"
SECURE = '{"secure": "[secret]"}'
"""What the program sees of a secret value: the engine hands it over in clear, and its mark would be lost."""


def configuration(values: Mapping[str, str], project: str = PROJECT) -> dict[str, object]:
    """The stack file's `config` mapping, rebuilt from what the engine hands a program.

    The engine passes every value as a string, lists and objects as JSON. Keys of other projects (`gcp:project`) are
    left out: they belong to their providers. Unknown keys of this project stay in, so that they are refused by name.
    """
    own = {key: value for key, value in values.items() if key.startswith(f"{project}:")}
    return {key: json.loads(value) if value[:1] in ("[", "{") else value for key, value in own.items()}


def deploy() -> None:
    """Declare the resources of the selected stack.

    Raises:
        pulumi.RunError: the stack file is wrong; the message lists every mistake. Pulumi shows it without a traceback.
    """
    try:
        values = {key: SECURE if is_config_secret(key) else value for key, value in CONFIG.get().items()}
        stack = parse_stack(configuration(values), PROJECT)
    except StackError as error:
        raise pulumi.RunError(str(error)) from None
    deploy_to_platform(pulumi.get_stack(), stack)


def deploy_to_platform(stack_name: str, stack: StackSpec) -> None:
    """Hand the stack to its platform. Imported here, so that one platform does not load the other's libraries."""
    if stack.platform.kind == "local":
        from infra.platforms.local import deploy as deploy_local

        deploy_local(stack_name, stack)
    else:
        from infra.platforms.gke import deploy as deploy_gke

        deploy_gke(stack_name, stack)
