"""The command of a run on this machine, where nobody else keeps its limit."""

import shlex

from workloads.spec import JobSpec

KILLED_AFTER_S = 60
"""How long a command may take to end when it is told to."""
TIMED_OUT = 124
"""Exit code of `timeout`: https://www.gnu.org/software/coreutils/manual/html_node/timeout-invocation.html"""


def limited(job: JobSpec, entrypoint: str) -> str:
    """The shell command, which ends when `timeout_s` is over and then says so. The recipe does that by itself."""
    if job.entrypoint is None:
        return entrypoint
    said = f"error: the command took longer than timeout_s: {job.timeout_s}"
    return (
        f"timeout --kill-after={KILLED_AFTER_S} {job.timeout_s} sh -c {shlex.quote(entrypoint)} || "
        f"{{ code=$?; [ $code -ne {TIMED_OUT} ] || echo {shlex.quote(said)}; exit $code; }}"
    )
