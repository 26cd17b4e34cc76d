"""Logs on GKE: of Ray where it answers, else of the pods."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx

from infra.platforms.errors import PlatformError
from infra.platforms.gke.found import is_head
from infra.platforms.gke.kubernetes_api import Kubernetes, look_up
from infra.platforms.gke.ray_of import ray_of
from infra.platforms.gke.run_found import SUBMITTER
from infra.platforms.gke.seeing import Seeing
from infra.platforms.ray_logs import QUIET_S, Lines
from infra.platforms.ray_runs import output
from infra.platforms.serve_logs import replica_output
from infra.platforms.state_seen import OVER, LogLine

LOOK_EVERY_S = 3.0


class PodLogs:
    """Raises `httpx.HTTPError` where the API server cannot be asked, PlatformError where there is no log."""

    def __init__(self, kubernetes: Kubernetes, namespace: str, seeing: Seeing) -> None:
        self._kubernetes, self._namespace, self._seeing = kubernetes, namespace, seeing

    def service(self, service: str, lines: int, follow: bool) -> Iterator[LogLine]:
        """What the replicas write into Ray's own files; while Ray's head does not answer, what the pods write."""
        found = look_up(self._kubernetes, self._namespace, service)
        cluster = found.coming().get("rayClusterName", "")
        if not cluster:
            raise self._nothing(f"service {service}", "KubeRay has made no Ray cluster for it")
        try:
            yield from replica_output(ray_of(self._kubernetes, self._namespace, cluster), service, lines, follow)
            return
        except PlatformError as error:
            why = error.found
        pods = found.pods_of(cluster)
        if not pods:
            raise self._nothing(f"service {service}", f"its Ray cluster {cluster} has no pods")
        head = f"Ray's head does not answer ({why}); this is what the pods of {cluster} write"
        yield LogLine(source="tpu-ray", line=head)
        for pod in pods:
            container = "ray-head" if is_head(pod) else "ray-worker"
            name = str(pod["metadata"]["name"])
            for line in self._kubernetes.log(self._namespace, name, container, lines).splitlines():
                yield LogLine(source=name, line=line)

    def run(self, run: str, lines: int, follow: bool) -> Iterator[LogLine]:
        """What the run's command prints: from the pod that submitted it, which outlives the Ray cluster, else from
        Ray."""
        while True:
            job = self._kubernetes.get(self._seeing.job_path(run))
            if job is None:
                raise self._nothing(f"run {run}", f"there is no RayJob {self._namespace}/{run}")
            if pod := self._seeing.submitter(run):
                yield from self._pod(run, pod, lines, follow)
                return
            status = job.get("status") or {}
            if status.get("rayClusterName") and status.get("dashboardURL") and status.get("jobId"):
                ray = ray_of(self._kubernetes, self._namespace, status["rayClusterName"])
                yield from output(ray, str(status["jobId"]), lines, follow)
                return
            if not follow or self._state(run) in OVER:
                raise self._nothing(f"run {run}", self._seeing.waits_for(job) or f"it is {self._state(run)}")
            # Its slice may come in hours: the run has a deadline of its own, and is over by then.
            time.sleep(LOOK_EVERY_S)

    def _pod(self, run: str, pod: str, lines: int, follow: bool) -> Iterator[LogLine]:
        if not follow:
            for text in self._kubernetes.log(self._namespace, pod, SUBMITTER, lines).splitlines():
                yield LogLine(source=run, line=text)
            return
        with Lines() as reading:
            reading.follow(run, lambda: self._stream(pod, lines))
            quiet_since = time.monotonic()
            while True:
                line = reading.read(0.5)
                if line is not None:
                    quiet_since = time.monotonic()
                    yield line
                elif reading.ended and time.monotonic() - quiet_since > QUIET_S:
                    if self._ended(pod):
                        return
                    # A connection of hours is cut by what lies between; the pod writes on.
                    reading.follow(run, lambda: self._stream(pod, 0))

    def _stream(self, pod: str, lines: int) -> AbstractContextManager[httpx.Response]:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}/log"
        return self._kubernetes.stream(path, container=SUBMITTER, tailLines=str(lines), follow="true")

    def _ended(self, pod: str) -> bool:
        found = self._kubernetes.get(f"/api/v1/namespaces/{self._namespace}/pods/{pod}")
        return found is None or found.get("status", {}).get("phase") in ("Succeeded", "Failed")

    def _state(self, run: str) -> str:
        return next((seen.state for seen in self._seeing.runs() if seen.run == run), "absent")

    def _nothing(self, what: str, why: str) -> PlatformError:
        return PlatformError(f"{what} has no log", found=why, next_step="`tpu-ray status` says how far it is")
