"""What the engine reports while it works: what is being done, what it came to, and why something failed."""

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pulumi.automation import EngineEvent, OpType

_DOING = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "replace": "replacing",
    "create-replacement": "creating anew",
    "delete-replaced": "deleting the old",
    "refresh": "looking at",
    "read": "reading",
    "remove-pending-replace": "forgetting the old",
}
# What Pulumi adds when something else has already failed; shown only where it is all there is.
_ECHOES = (
    "update failed",
    "preview failed",
    "refresh failed",
    "destroy failed",
    "resource monitor shut down",
    "Resource monitor has terminated",
    "an unhandled error occurred",
    "one or more errors occurred",
)


@dataclass(frozen=True)
class Failure:
    """One thing that went wrong: the resource's name (empty for the program or the engine) and the reason.

    `details` is the whole text where `reason` is the end of a traceback, else empty.
    """

    resource: str
    reason: str
    details: str = ""


def resource_name(urn: str) -> str:
    """`urn:pulumi:local::tpu-ray::pulumi-python:dynamic/x:Ready::chat` is `Ready chat`; the stack itself is empty."""
    parts = urn.split("::")
    if len(parts) < 4:
        return urn
    kind = parts[2].split("$")[-1]
    return "" if kind == "pulumi:pulumi:Stack" else f"{kind.split(':')[-1].split('/')[-1]} {parts[3]}"


def plain(message: str) -> str:
    """A diagnostic without colour codes and without the words that gRPC puts before a provider's own."""
    text = re.sub(r"\x1b\[[0-9;]*m|<\{%.*?%\}>", "", message).strip()
    return re.sub(r"^(?:error: )?(?:Exception calling application: )?", "", text).strip()


def failure(resource: str, text: str) -> Failure:
    """The failure that an error message tells of; of a traceback the exception's own words are the reason."""
    if "Traceback (most recent call last):" not in text:
        return Failure(resource, text)
    frames_and_end = text.rpartition("Traceback (most recent call last):")[2].splitlines()
    last_frame = max((n for n, line in enumerate(frames_and_end) if line.startswith("  ")), default=-1)
    kind, _, words = "\n".join(frames_and_end[last_frame + 1 :]).strip().partition(": ")
    # A module's own exception, or a plain one, was raised to be read; any other is a mistake in code: its kind helps.
    meant = "." in kind or kind in ("Exception", "RuntimeError", "TimeoutError")
    return Failure(resource, words.strip() if meant and words else f"{kind}: {words}".removesuffix(": "), text)


class Watch:
    """Follows one operation. `event` is the Automation API's `on_event`; `say` gets a line for each step.

    `steps` is not set for a preview, whose steps take no time: they are in `planned`. A refresh is told only where it
    is the operation itself (`looks`), not where it is part of another.
    """

    def __init__(self, say: Callable[[str], None], steps: bool = True, looks: bool = False) -> None:
        self._say = say
        self._steps = steps
        self._quiet = {"same"} if looks else {"same", "refresh"}
        self._diagnostics: dict[str, list[str]] = {}
        self.running: dict[str, tuple[str, float]] = {}
        """URN to (what is being done, when it began on the monotonic clock)."""
        self.changes: Counter[str] = Counter()
        self.planned: list[dict[str, str]] = []
        """Steps in the engine's order; `keys` are the properties that differ."""

    def event(self, event: EngineEvent) -> None:
        """Take one event. The Automation API calls this from its own thread, one at a time."""
        if event.resource_pre_event:
            metadata = event.resource_pre_event.metadata
            self._begin(metadata.urn, metadata.op, list(metadata.detailed_diff or metadata.diffs or ()))
        elif event.res_outputs_event:
            self._end(event.res_outputs_event.metadata.urn, "done")
        elif event.res_op_failed_event:
            self._end(event.res_op_failed_event.metadata.urn, "failed")
        elif event.diagnostic_event:
            self._diagnostic(event.diagnostic_event.urn or "", event.diagnostic_event.severity, event)
        elif event.stdout_event and "^C" in event.stdout_event.message:
            self._say(plain(event.stdout_event.message))
        elif event.summary_event:
            self.changes.update(
                {str(getattr(k, "value", k)): n for k, n in event.summary_event.resource_changes.items()}
            )

    def _begin(self, urn: str, op: OpType | str, keys: list[str]) -> None:
        word = str(getattr(op, "value", op))
        name = "" if "::pulumi:providers:" in urn else resource_name(urn)
        if name and word != "same":
            self.planned.append({"op": word, "resource": name, "urn": urn, "keys": ", ".join(sorted(keys))})
        if not name or not self._steps or word in self._quiet:
            return
        self.running[urn] = (f"{_DOING.get(word, word)} {name}", time.monotonic())
        self._say(f"{_DOING.get(word, word)} {name}")

    def _end(self, urn: str, how: str) -> None:
        doing = self.running.pop(urn, None)
        if doing is not None:
            self._say(f"{resource_name(urn)}: {how} ({time.monotonic() - doing[1]:.1f} s)")

    def _diagnostic(self, urn: str, severity: str, event: EngineEvent) -> None:
        assert event.diagnostic_event is not None
        if event.diagnostic_event.ephemeral:
            return
        text = plain(event.diagnostic_event.message)
        if severity == "error":
            seen = self._diagnostics.setdefault(urn, [])
            if text and text not in seen:
                seen.append(text)
        elif severity in ("info", "info#err", "warning") and text:  # info#err: a provider's own error stream
            name = resource_name(urn) if urn else ""
            self._say(f"{name}: {text}" if name else text)

    def failures(self) -> list[Failure]:
        """What went wrong, a resource's failure before the program's; echoes of it are left out."""
        found = [failure(resource_name(urn), text) for urn, texts in self._diagnostics.items() for text in texts]
        own = [one for one in found if not one.reason.startswith(_ECHOES)]
        return sorted(own or found, key=lambda one: one.resource == "")


def command_failure(error: Exception) -> Failure:
    """The reason in a failed `pulumi` command's own words, for failures before the engine reports anything."""
    text = str(error)
    found = re.findall(r"error: (.+?)(?=\n *error: |\Z)", text.partition("stderr:")[2] or text, flags=re.DOTALL)
    return Failure("", plain(found[-1]) if found else text.strip())
