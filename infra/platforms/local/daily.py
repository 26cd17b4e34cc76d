"""The daily verbs on a `local` stack."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from infra.plan.health import api_url, health_of
from infra.plan.launches import job_launch
from infra.platforms.daily import Say, Submission
from infra.platforms.local import cluster, jobs
from infra.platforms.local.applications import FAILED, applications, running
from infra.platforms.local.folders import Folders
from infra.platforms.local.readiness import answers, progress_of, reason_of, service_url
from infra.platforms.local.state import ClusterState
from infra.platforms.ray_rest import RayRest
from infra.platforms.ray_runs import first_line, output, start, state_of, stop, submitted_run
from infra.platforms.serve_logs import replica_output
from infra.platforms.state_seen import LogLine, PoolSeen, RunSeen, ServiceSeen, StackSeen
from infra.stack import StackSpec
from workloads.spec import JobLaunch, JobSpec, ServiceSpec


class LocalDaily:
    """One stack of this machine."""

    def __init__(self, stack_name: str, stack: StackSpec) -> None:
        self._name, self._stack, self._folders = stack_name, stack, Folders.of(stack_name)
        # No proxy of the environment can reach this machine's loopback.
        self._client = httpx.Client(trust_env=False)

    def close(self) -> None:
        self._client.close()

    def see(self) -> StackSeen:
        now = cluster.status(self._name)
        found: dict[str, dict[str, Any]] = {}
        if now.alive:
            found = applications(self._name)
        reason = "" if now.alive else f"gone: {', '.join(now.dead)}" if now.state else "no cluster of it runs"
        return StackSeen(
            stack=self._name,
            platform="local",
            up=now.alive,
            reason=reason,
            pools=tuple(self._pools(now.state)),
            services=tuple(self._service(service, found.get(service.name)) for service in self._stack.services),
            jobs=self.runs(),
        )

    def runs(self) -> tuple[RunSeen, ...]:
        listed: dict[str, dict[str, Any]] = {}
        if cluster.status(self._name).alive:
            answer = self._ray().get("/api/jobs/")
            listed = {str(one["submission_id"]): one for one in answer if one.get("submission_id")}
        declared = [self._declared(job, listed) for job in self._stack.jobs]
        submitted = [run for one in listed.values() if (run := submitted_run(one))]
        return (*declared, *submitted)

    def service_log(self, service: str, lines: int, follow: bool) -> Iterator[LogLine]:
        return replica_output(self._ray(), service, lines, follow)

    def run_log(self, run: str, lines: int, follow: bool) -> Iterator[LogLine]:
        return output(self._ray(), run, lines, follow)

    def stop(self, run: str, say: Say, timeout_s: float) -> RunSeen:
        # Ray keeps what was stopped, so that `up` knows it and does not start it again.
        stop(self._ray(), run, say, timeout_s)
        return self.result(run)

    def submit(self, submission: Submission, say: Say, timeout_s: float) -> RunSeen:
        start(self._ray(), submission)
        return self.result(submission.launch.name)

    def result(self, run: str) -> RunSeen:
        return next(seen for seen in self.runs() if seen.run == run)

    def _ray(self) -> RayRest:
        """Ray's dashboard. Raises PlatformError where the cluster does not live."""
        state, _ = running(self._name)
        token = self._folders.token_file.read_text().strip()
        return RayRest(
            self._client,
            state.dashboard,
            lambda: {"Authorization": f"Bearer {token}"},
            f"`tpu-ray local status -s {self._name}` says which processes live; `up` starts them again",
        )

    def _pools(self, state: ClusterState | None) -> Iterator[PoolSeen]:
        dead = set(state.dead_roles()) if state else set()
        hosts = state.spec.hosts if state and "head" not in dead else ()
        lacking = {host.slice_name for host in hosts if host.role in dead}
        for pool in self._stack.pools:
            there = {host.slice_name for host in hosts if host.pool == pool.name} - lacking
            yield PoolSeen(
                name=pool.name,
                generation=pool.generation,
                topology=pool.topology,
                slices_there=len(there),
                slices_min=pool.slices.max,  # Nothing is added on demand on one machine.
                slices_max=pool.slices.max,
            )

    def _service(self, service: ServiceSpec, application: dict[str, Any] | None) -> ServiceSeen:
        assert self._stack.platform.kind == "local"
        url = service_url(self._stack.platform.http_port, service.name)
        condition = str(application["status"]) if application else ""
        deployments = (application or {}).get("deployments", {}).values()
        ready = sum(one.get("state") == "RUNNING" for d in deployments for one in d.get("replicas", []))
        seen = ServiceSeen(
            name=service.name,
            pool=service.pool,
            state="starting",
            replicas_ready=min(ready, service.replicas.max),
            replicas_wanted=service.replicas.min,
            replicas_most=service.replicas.max,
            url=api_url(service, url),
        )
        if application is None and service.paused:
            return seen.model_copy(update={"state": "paused"})
        if application is None:
            return seen.model_copy(
                update={"state": "absent", "reason": "Serve does not have it; `up` gives it to Serve"}
            )
        if condition == "RUNNING" and answers(url, health=health_of(service)):
            return seen.model_copy(update={"state": "ready"})
        if condition in (*FAILED, "UNHEALTHY"):
            return seen.model_copy(update={"state": "failed", "reason": f"{condition}: {reason_of(application)}"})
        return seen.model_copy(update={"reason": f"{condition}: {progress_of(application)}"})

    def _declared(self, job: JobSpec, listed: dict[str, dict[str, Any]]) -> RunSeen:
        launch = job_launch(self._stack, job, str(self._folders.storage))
        seen = RunSeen(name=job.name, run=launch.run_name, pool=job.pool, state="absent", progress=progress(launch))
        details = listed.get(launch.run_name)
        if details is None:
            if jobs.exported(launch.export_dir) is not None:
                return seen.model_copy(update={"state": "succeeded"})
            why = "Ray does not know it: `up` starts it"
            if job.schedule:
                why = "a schedule begins its runs in the cloud alone"
            elif job.suspend:
                why = "it is suspended"
            return seen.model_copy(update={"reason": why})
        state = state_of(details)
        reason = first_line(details.get("message")) if state in ("pending", "failed") else ""
        return seen.model_copy(update={"state": state, "reason": reason, "exit_code": details.get("driver_exit_code")})


def progress(launch: JobLaunch) -> str:
    """`step 40 of 120`, from the run's own metrics; empty before its first step."""
    try:
        lines = (Path(launch.storage) / launch.run_name / "metrics.jsonl").read_text().splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            return f"step {int(json.loads(line)['step']) + 1} of {launch.job.steps}"
        except (ValueError, KeyError, TypeError):
            continue  # Half of a line that is just being written.
    return ""
