"""Opening a stack: the CLI, the backend and a folder to work in."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import yaml
from pulumi import automation as auto

from infra.automation.project import Project
from infra.automation.stale_lock import release_stale_locks
from infra.program import deploy
from infra.pulumi_cli import Backend, PulumiCli, choose_backend, obtain_cli


def process_environment(cli: PulumiCli, backend: Backend) -> dict[str, str]:
    """What `pulumi` and its plugins need in their environment: this Python, the CLI's plugins, the backend."""
    own_bin = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([own_bin, str(cli.bin_dir), os.environ.get("PATH", "")]),
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        **backend.environment,
    }


def working_folder(project: Project, backend: Backend, stack: str) -> Path:
    """Folder that the engine runs in.

    Where the user has chosen the backend this is the checkout itself. For tpu-ray's own backend it is a copy of
    Pulumi.yaml and the stack file below the backend: making a stack writes the salt of its encryption into the stack
    file, and that belongs to this machine, not to a file in version control.
    """
    if backend.own is None:
        return project.root
    name = hashlib.sha256(str(project.root).encode()).hexdigest()[:12]
    folder = backend.own / "workspaces" / name
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    settings = yaml.safe_load((project.root / "Pulumi.yaml").read_text())
    settings["stackConfigDir"] = "stacks"
    settings.pop("main", None)
    settings["runtime"] = {"name": "python", "options": {"virtualenv": sys.prefix}}
    write_whole(folder / "Pulumi.yaml", yaml.safe_dump(settings, sort_keys=False))
    file = project.stack_file(stack)
    write_whole(folder / "stacks" / file.name, without_salt(readable(file)))
    return folder


def readable(file: Path) -> str:
    """A stack file's text; an empty file's where it is gone or no YAML, so that what it once made can be ended."""
    try:
        text = file.read_text()
        yaml.safe_load(text)
    except (FileNotFoundError, yaml.YAMLError):
        return "config: {}\n"
    return text


def working_file(project: Project, backend: Backend, stack: str) -> Path:
    """The stack file that the engine reads; for tpu-ray's own backend the copy, made anew."""
    folder = working_folder(project, backend, stack)
    return project.stack_file(stack) if backend.own is None else folder / "stacks" / project.stack_file(stack).name


def without_salt(stack_file: str) -> str:
    """A stack file's text without the `encryptionsalt` that plain `pulumi` may have written, maybe on another machine.

    The stack's state holds the right one. Where values of the file are encrypted (`secure:`) the line stays.
    """
    if "secure:" in stack_file:
        return stack_file
    lines = stack_file.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("encryptionsalt:"))


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once: another tpu-ray on the same checkout never reads half of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text)
    shutil.move(part, path)


def open_stack(project: Project, stack: str, say: Callable[[str], None], create: bool = True) -> auto.Stack:
    """The stack, made in the backend if it is not there yet and `create` is set.

    Raises:
        CliNotFound: there is no Pulumi CLI and none could be made.
        StackNotFoundError: it is not in the backend and `create` is not set.
        CommandError: the backend refuses.
    """
    cli = obtain_cli(say)
    backend = choose_backend(project.root)
    environment = process_environment(cli, backend)
    if backend.own is not None:
        # A passphrase for another backend must not be taken for this one's.
        os.environ.pop("PULUMI_CONFIG_PASSPHRASE", None)
        release_stale_locks(backend.own / "backend", project.name, stack, say)
    options = auto.LocalWorkspaceOptions(
        work_dir=str(working_folder(project, backend, stack)),
        env_vars=environment,
        pulumi_command=auto.PulumiCommand(root=str(cli.bin_dir.parent)) if cli.bin_dir.name == "bin" else None,
    )
    open_it = auto.create_or_select_stack if create else auto.select_stack
    return open_it(stack_name=stack, project_name=project.name, program=deploy, opts=options)
