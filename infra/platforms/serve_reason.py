"""The cause behind what Serve says of an application that fails. Pure."""

import re
from collections.abc import Iterable

ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Unavailable|Timeout|Exit|Interrupt)\b.*$")

NO_REASON = "Serve gave no reason"


def deepest_reason(messages: Iterable[str]) -> str:
    """The innermost error of the first message that holds one, else the first message that says anything.

    `messages` are the deepest first: replicas', deployments', the application's.
    """
    said = [message.strip() for message in messages if message.strip()]
    causes = (cause_of(message) for message in said)
    return next((cause for cause in causes if cause), said[0] if said else NO_REASON)


def cause_of(message: str) -> str:
    """The error that a traceback ends with, all its lines; empty where the text holds no traceback.

    Ray wraps the replica's own error in its own (`RayTaskError(ValueError): ...`) and appends advice after it.
    """
    lines = message.splitlines()
    if not any("Traceback (most recent call last)" in line for line in lines):
        return ""
    starts = [index for index, line in enumerate(lines) if ERROR.match(line)]
    if not starts:
        return ""
    taken = [lines[starts[-1]]]
    for line in lines[starts[-1] + 1 :]:
        if not line.strip() or re.match(r"^(Retrying|See |\(|The above|During handling|\[)", line.strip()):
            break
        taken.append(line.rstrip())
    return "\n    ".join(taken)
