"""The four operations on a stack, each giving an outcome instead of an exception."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from pulumi import automation as auto

from infra.automation.begun import forget_begun
from infra.automation.project import Project
from infra.automation.protection import in_own_words, protected
from infra.automation.unreadable import explained
from infra.automation.watch import Failure, Watch, command_failure
from infra.automation.workspace import open_stack
from infra.pulumi_cli import CliNotFound

Operation = Literal["up", "preview", "refresh", "destroy"]


@dataclass(frozen=True)
class Outcome:
    """How an operation ended. `changes` counts resources per operation (`same`, `create`, ...)."""

    operation: Operation
    stack: str
    duration_s: float
    changes: dict[str, int] = field(default_factory=dict)
    steps: tuple[dict[str, str], ...] = ()
    outputs: dict[str, object] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    found: bool = True
    """Whether the backend has the stack."""

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def changed(self) -> int:
        """Resources that were, or in a preview would be, changed."""
        return sum(n for op, n in self.changes.items() if op not in ("same", "read", "refresh"))


def operate(
    project: Project,
    stack_name: str,
    operation: Operation,
    say: Callable[[str], None],
    watch: Watch | None = None,
    only: tuple[str, ...] = (),
) -> Outcome:
    """Run one operation to its end. Everything that goes wrong in Pulumi or below it is in `failures`.

    `only` are URNs that an `up` is about; all others stay as they are, whatever the stack file says of them.
    """
    watch = watch or Watch(say)
    started = time.monotonic()

    def ended(failures: list[Failure], outputs: dict[str, object]) -> Outcome:
        spent = round(time.monotonic() - started, 1)
        return Outcome(
            operation, stack_name, spent, dict(watch.changes), tuple(watch.planned), outputs, tuple(failures)
        )

    try:
        stack = open_stack(project, stack_name, say, create=operation in ("up", "preview"))
    except auto.StackNotFoundError:
        say(f"there is no stack {stack_name} in the backend: nothing to {operation}")
        return replace(ended([], {}), found=False)
    except CliNotFound as error:
        return ended([Failure("", str(error))], {})
    except (auto.CommandError, auto.InvalidVersionError) as error:
        return ended([explained(command_failure(error), project, stack_name)], {})
    try:
        outputs: dict[str, object] = {}
        if operation != "preview":
            forget_begun(stack, say)
        if operation == "up":
            result = stack.up(on_event=watch.event, suppress_progress=True, target=list(only) or None)
            outputs = {key: "[secret]" if value.secret else value.value for key, value in result.outputs.items()}
        elif operation == "preview":
            stack.preview(on_event=watch.event, suppress_progress=True)
        elif operation == "refresh":
            stack.refresh(on_event=watch.event, suppress_progress=True)
        elif refused := protected(stack, stack_name):
            return ended([refused], {})
        else:
            stack.destroy(on_event=watch.event, suppress_progress=True)
    except auto.CommandError as error:
        found = in_own_words(watch.failures(), stack_name) or [command_failure(error)]
        return ended([explained(one, project, stack_name) for one in found], {})
    return ended([], outputs)
