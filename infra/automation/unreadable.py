"""A stack file whose secrets were encrypted somewhere else: Pulumi says `incorrect passphrase`, and nothing of why."""

from dataclasses import replace

from infra.automation.project import Project
from infra.automation.watch import Failure
from infra.pulumi_cli import choose_backend
from infra.stack.plain import is_secret, plain
from infra.stack.problems import StackError
from infra.stack.read import read_stack_file


def explained(failure: Failure, project: Project, stack: str) -> Failure:
    """The same failure; where the passphrase is not the one of the file's secrets, with what that means here."""
    if not failure.reason.endswith("incorrect passphrase"):
        return failure
    file, keys = project.stack_file(stack), ", ".join(_secret_keys(project, stack)) or "its secrets"
    backend = choose_backend(project.root)
    if backend.own is not None:
        said = (
            f"{file}: {keys} cannot be read here: encrypted with another passphrase than that of the state in "
            f"{backend.where}\n"
            f"next: take {keys} and the line encryptionsalt out of the file, then `tpu-ray preview -s {stack}` and "
            "`pulumi config set --secret`; several people who bring one stack up share its state, see docs/team.md"
        )
    else:
        said = (
            f"{file}: {keys} cannot be read: encrypted with another passphrase than PULUMI_CONFIG_PASSPHRASE or "
            f"PULUMI_CONFIG_PASSPHRASE_FILE gives\n"
            f"next: set the one that belongs to stack {stack} in {backend.where}"
        )
    return replace(failure, reason=said)


def _secret_keys(project: Project, stack: str) -> list[str]:
    try:
        config = read_stack_file(project.stack_file(stack))
    except StackError:
        return []
    return [key for key, value in config.items() if is_secret(plain(value))]
