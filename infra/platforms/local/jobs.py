"""Runs of jobs, through Ray's Jobs API. The submission id is the run's name."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.platforms.errors import PlatformError
from infra.platforms.local.applications import running
from infra.platforms.local.cluster import status as cluster_status
from infra.platforms.local.folders import Folders

UNSUCCESSFUL = ("FAILED", "STOPPED")
OVER = ("SUCCEEDED", *UNSUCCESSFUL)
POOL = "tpu-ray-pool"
"""Key of a run's metadata in Ray, by which it is told from what others submitted to the same Ray."""
SLACK_S = 60.0
"""How much longer a run is waited for than `timeout_s`: its driver starts later, and ends it with the reason."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """State of one run: PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED, with Ray's message.

    `pool` is empty for what was not submitted by this platform.
    """

    name: str
    state: str
    message: str
    entrypoint: str = ""
    pool: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Run":
        """From Ray's JobDetails."""
        pool = (answer.get("metadata") or {}).get(POOL, "")
        name, state = str(answer["submission_id"]), str(answer["status"])
        env = (answer.get("runtime_env") or {}).get("env_vars") or {}
        return cls(name, state, str(answer.get("message") or ""), str(answer["entrypoint"]), pool, env)

    def goes_on_with(self, entrypoint: str, env: Mapping[str, str]) -> bool:
        """Whether it may be submitted again: it ended without success, and is now asked for otherwise.

        So a limit that ended it can be raised. What may not change within a run, its driver refuses.
        """
        return self.state in UNSUCCESSFUL and (self.entrypoint, dict(self.env)) != (entrypoint, dict(env))


def find(stack: str, run_name: str) -> Run | None:
    """The run of that name, None where this life of the cluster knows none."""
    _, dashboard = running(stack)
    answer = dashboard.found(f"/api/jobs/{run_name}")
    return Run.of(answer) if answer else None


def going(stack: str) -> list[Run]:
    """The runs of this platform that are not over."""
    _, dashboard = running(stack)
    # Drivers that somebody connected by hand have no submission id.
    runs = [Run.of(answer) for answer in dashboard.get("/api/jobs/") if answer.get("submission_id")]
    return [run for run in runs if run.pool and run.state not in OVER]


def submit(stack: str, run_name: str, entrypoint: str, pool: str, env: Mapping[str, str] | None = None) -> None:
    """Start a run; does not wait for it. `env` are variables of its driver and of all its workers.

    A run of that name that is there already is left as it is, unless it may go on with this entrypoint.
    """
    _, dashboard = running(stack)
    there = find(stack, run_name)
    if there is not None:
        if not there.goes_on_with(entrypoint, env or {}):
            return
        dashboard.delete(f"/api/jobs/{run_name}")
    body: dict[str, Any] = {"entrypoint": entrypoint, "submission_id": run_name, "metadata": {POOL: pool}}
    dashboard.post("/api/jobs/", {**body, **({"runtime_env": {"env_vars": dict(env)}} if env else {})})


def end(stack: str, run_name: str, timeout_s: float = 60) -> None:
    """Stop a run that is still going and wait for its end; nothing happens where it or the cluster is gone.

    Ray forgets a run that was stopped here, so that it starts again, from its checkpoint, when it is asked for again.
    """
    if not cluster_status(stack).alive:
        return
    _, dashboard = running(stack)
    until = time.monotonic() + timeout_s
    asked = False
    while (run := find(stack, run_name)) is not None and run.state not in OVER:
        if not asked:
            dashboard.post(f"/api/jobs/{run_name}/stop")
            asked = True
        if time.monotonic() > until:
            raise PlatformError(
                f"run {run_name} does not end",
                wanted=f"it stopped within {timeout_s:.0f} s",
                found=run.state,
                next_step=f"look at its log in {dashboard.url}/#/jobs/{run_name}",
            )
        time.sleep(0.5)
    if asked and run is not None:
        dashboard.delete(f"/api/jobs/{run_name}")


def logs(stack: str, run_name: str, lines: int = 15) -> str:
    """The end of a run's output."""
    _, dashboard = running(stack)
    text = str(dashboard.get(f"/api/jobs/{run_name}/logs").get("logs", ""))
    return "\n    ".join(text.splitlines()[-lines:])


def exported(export_dir: str) -> dict[str, Any] | None:
    """The content of export.json, None while the export is not complete."""
    try:
        content = json.loads((Path(export_dir) / "export.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) and "step" in content else None


def wait_for_export(
    stack: str, run_name: str, export_dir: str, timeout_s: float, say: Say, needs_export: bool = True
) -> dict[str, Any]:
    """Wait until the run has succeeded and its export is complete; the content of export.json.

    Where no export is needed, success alone is waited for, and without one the content is empty.

    Raises:
        PlatformError: the run failed, was stopped, exported nothing, or is not over `SLACK_S` after its `timeout_s`.
    """
    began = last = time.monotonic()
    while True:
        # Looked at before the run's state: a run that is over writes nothing more.
        run, export = find(stack, run_name), exported(export_dir)
        if export is not None and (run is None or run.state == "SUCCEEDED"):
            return export
        if not needs_export and run is not None and run.state == "SUCCEEDED":
            return export or {}
        now = time.monotonic()
        if run is None or run.state in OVER or now - began > timeout_s + SLACK_S:
            raise _unfinished(stack, run_name, export_dir, run, now - began)
        if now - last > 10:
            last = now
            say(f"run {run_name} is {run.state} ({now - began:.0f} s): {_last_line(logs(stack, run_name, 1))}")
        time.sleep(0.5)


def _unfinished(stack: str, run_name: str, export_dir: str, run: Run | None, waited_s: float) -> PlatformError:
    wanted = f"the run succeeded, with its model in {export_dir}"
    change = "change the job's `run:` in `tpu-ray:jobs`, which starts it anew"
    raised = (
        "where a limit ended it, raise `timeout_s` (or that limit) and `up` again: it goes on from its last checkpoint"
    )
    if run is None:
        return PlatformError(
            f"run {run_name} is not known to Ray", wanted=wanted, found="no such run", next_step="`up`"
        )
    end_of_log = f"{run.state} {run.message}\n    end of its log:\n    {logs(stack, run_name)}"
    if run.state == "SUCCEEDED":
        return PlatformError(f"run {run_name} left no model", wanted=wanted, found=end_of_log, next_step=change)
    if run.state in OVER:
        cause = f"look for the cause in `{Folders.of(stack).logs}` and the log above"
        next_step = f"{raised}; otherwise {cause}, then {change}"
        return PlatformError(f"run {run_name} did not succeed", wanted=wanted, found=end_of_log, next_step=next_step)
    return PlatformError(
        f"run {run_name} is not over after {waited_s:.0f} s",
        wanted=wanted,
        found=end_of_log,
        next_step=f"another `up` waits again; {raised}",
    )


def _last_line(text: str) -> str:
    """The end of a log as progress shows it: without colours and without Ray's `(Worker pid=.., ip=..)` in front."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines()
    return re.sub(r"^\(\w+ pid=[^)]*\) ?", "", lines[-1].strip()) if lines else ""
