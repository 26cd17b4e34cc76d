"""Runs in Ray's Jobs API: what they are, their output, and how one is started from a working directory.

Fields: https://docs.ray.io/en/releases-2.60.0/cluster/running-applications/job-submission/rest.html
"""

import hashlib
import shlex
import time
from collections.abc import Iterator, Mapping
from typing import Any

from infra.platforms.daily import Say, Submission
from infra.platforms.errors import PlatformError
from infra.platforms.ray_logs import QUIET_S, Lines, last_lines, log_path
from infra.platforms.ray_rest import RayRest
from infra.platforms.state_seen import OVER, LogLine, RunSeen, RunState

SUBMITTED, SUBMITTED_POOL = "tpu-ray-submitted", "tpu-ray-submitted-pool"
"""Keys of a run's metadata. Not the one of declared runs: `up` ends those that the stack file no longer has."""
MODULE = "workloads.submitted"
LOG_FILE = "job-driver-{run}.log"
"""JOB_LOGS_PATH_TEMPLATE of ray/dashboard/modules/job/job_log_storage_client.py"""
LOOK_EVERY_S = 1.0


def state_of(details: Mapping[str, Any]) -> RunState:
    """The state in Ray's JobDetails: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED there."""
    states: dict[str, RunState] = {
        "PENDING": "pending",
        "RUNNING": "running",
        "STOPPED": "stopped",
        "SUCCEEDED": "succeeded",
        "FAILED": "failed",
    }
    return states.get(str(details.get("status")), "pending")


def submitted_run(details: Mapping[str, Any]) -> RunSeen | None:
    """A submitted run from Ray's JobDetails; None for another."""
    metadata = details.get("metadata") or {}
    if SUBMITTED not in metadata:
        return None
    state, run = state_of(details), str(details["submission_id"])
    return RunSeen(
        name=run,
        run=run,
        pool=str(metadata.get(SUBMITTED_POOL, "")),
        state=state,
        reason=first_line(details.get("message")) if state in ("pending", "failed") else "",
        submitted=True,
        exit_code=details.get("driver_exit_code"),
    )


def first_line(message: object) -> str:
    """The first line of a message, of which Ray has long ones."""
    return next(iter(str(message or "").strip().splitlines()), "")[:300]


def upload(ray: RayRest, package: bytes) -> str:
    """Give Ray a zip file, unless it has it already; the name by which a runtime environment means it."""
    name = f"_ray_pkg_{hashlib.sha256(package).hexdigest()[:32]}.zip"
    path = f"/api/packages/gcs/{name}"
    if not ray.has(path):
        ray.put_bytes(path, package)
    return f"gcs://{name}"


def entrypoint(submission: Submission) -> str:
    """The shell command of Ray's job."""
    launch = submission.launch
    if submission.on_driver:
        return shlex.join(launch.command)
    return shlex.join(["python", "-m", MODULE, launch.model_dump_json()])


def start(ray: RayRest, submission: Submission) -> None:
    """Upload the working directory and start the run. Ray refuses a name that it knows."""
    launch = submission.launch
    environment = {"working_dir": upload(ray, submission.package)}
    if submission.on_driver:
        shape = {"TPU_RAY_POOL": launch.pool, "TPU_RAY_SLICE": launch.slice.model_dump_json()}
        environment |= {"env_vars": shape}  # type: ignore[dict-item]
    ray.post(
        "/api/jobs/",
        {
            "entrypoint": entrypoint(submission),
            "submission_id": launch.name,
            "runtime_env": environment,
            "metadata": {SUBMITTED: "true", SUBMITTED_POOL: launch.pool},
        },
    )


def stop(ray: RayRest, run: str, say: Say, timeout_s: float) -> None:
    """End a run and wait for its end. Ray asks its command to end (SIGTERM), and kills it 3 s later.

    Raises:
        PlatformError: it goes on after `timeout_s`.
    """
    until, asked = time.monotonic() + timeout_s, False
    while (details := ray.found(f"/api/jobs/{run}")) and state_of(details) not in OVER:
        if not asked:
            say(f"stopping run {run}")
            ray.post(f"/api/jobs/{run}/stop")
            asked = True
        if time.monotonic() > until:
            raise PlatformError(
                f"run {run} does not end",
                wanted=f"it stopped within {timeout_s:.0f} s",
                found=str(details.get("status")),
                next_step=f"look at its log: `tpu-ray logs job/{run}`",
            )
        time.sleep(0.5)


def output(ray: RayRest, run: str, lines: int, follow: bool) -> Iterator[LogLine]:
    """The last lines of a run's output, and with `follow` all that come until it is over."""
    details = ray.found(f"/api/jobs/{run}") or {}
    file = LOG_FILE.format(run=run)
    if not follow:
        if details.get("driver_node_id"):
            yield from last_lines(ray, run, details["driver_node_id"], file, lines)
        return
    with Lines() as reading:
        quiet_since = looked = time.monotonic()
        while True:
            if run not in reading.sources and (node := details.get("driver_node_id")):
                path = log_path(node, file, lines, follow=True)
                reading.follow(run, lambda path=path: ray.stream(path))  # type: ignore[misc]
            line = reading.read(0.25)
            now = time.monotonic()
            if line is not None:
                quiet_since = now
                yield line
            elif state_of(details) in OVER and (now - quiet_since > QUIET_S or reading.ended):
                return
            if now - looked > LOOK_EVERY_S and state_of(details) not in OVER:
                looked = now
                details = ray.found(f"/api/jobs/{run}") or {"status": "STOPPED"}
                quiet_since = now
