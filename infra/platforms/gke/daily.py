"""The daily verbs on a `gke` stack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from infra.platforms.daily import Say, Submission
from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.logs import PodLogs
from infra.platforms.gke.ray_of import ray_of
from infra.platforms.gke.ready_resource import log_in
from infra.platforms.gke.seeing import Seeing
from infra.platforms.gke.stopping import stop_run
from infra.platforms.gke.submitting import submit_run
from infra.platforms.ray_runs import state_of
from infra.platforms.state_seen import OVER, LogLine, RunSeen, StackSeen
from infra.stack import GkePlatform, StackSpec

RESULT_S = 60.0
"""How long KubeRay may take to see that a run is over."""
NEVER_UP = "it was never brought up: there is no cluster in its state"


class GkeDaily:
    """One stack in the cloud."""

    def __init__(self, stack_name: str, stack: StackSpec, login: str | None) -> None:
        """Log in. `login` is as `login_of` gives it.

        Raises:
            PlatformError: the login fails.
        """
        assert isinstance(stack.platform, GkePlatform)
        self._name, self._stack, self._platform = stack_name, stack, stack.platform
        self._known = None if login is None else log_in({"login": login, "context": stack.platform.cluster.context})

    def close(self) -> None:
        if self._known:
            self._known.close()

    def see(self) -> StackSeen:
        if self._known is None:
            return StackSeen(stack=self._name, platform="gke", up=False, reason=NEVER_UP)
        with _asking():
            ask = Seeing(self._known, self._platform, self._stack)
            return StackSeen(
                stack=self._name,
                platform="gke",
                up=True,
                pools=tuple(ask.pool(pool) for pool in self._stack.pools),
                services=tuple(ask.service(service) for service in self._stack.services),
                jobs=ask.runs(),
            )

    def runs(self) -> tuple[RunSeen, ...]:
        with _asking():
            return self._seeing.runs()

    def service_log(self, service: str, lines: int, follow: bool) -> Iterator[LogLine]:
        with _asking():
            yield from self._logs.service(service, lines, follow)

    def run_log(self, run: str, lines: int, follow: bool) -> Iterator[LogLine]:
        with _asking():
            yield from self._logs.run(run, lines, follow)

    def stop(self, run: str, say: Say, timeout_s: float) -> RunSeen:
        with _asking():
            return stop_run(self._kubernetes, self._seeing, run, say, timeout_s)

    def submit(self, submission: Submission, say: Say, timeout_s: float) -> RunSeen:
        with _asking():
            return submit_run(self._kubernetes, self._seeing, self._stack, submission, say, timeout_s)

    def result(self, run: str) -> RunSeen:
        until = time.monotonic() + RESULT_S
        while True:
            with _asking():
                job = self._kubernetes.get(self._seeing.job_path(run))
                seen = next(one for one in self._seeing.runs() if one.run == run)
            status = (job or {}).get("status") or {}
            if (cluster := status.get("rayClusterName")) and (job_id := status.get("jobId")):
                try:
                    details = ray_of(self._kubernetes, self._platform.namespace, cluster).found(f"/api/jobs/{job_id}")
                except PlatformError:
                    details = None  # The cluster has gone; KubeRay has written down what became of the run.
                if details and state_of(details) in OVER:
                    code = details.get("driver_exit_code")
                    return seen.model_copy(update={"state": state_of(details), "exit_code": code})
            if seen.state in OVER or time.monotonic() > until:
                return seen
            time.sleep(1)

    @property
    def _kubernetes(self) -> Kubernetes:
        if self._known is None:
            raise PlatformError(f"stack {self._name} is not up", found=NEVER_UP, next_step=f"`up -s {self._name}`")
        return self._known

    @property
    def _seeing(self) -> Seeing:
        return Seeing(self._kubernetes, self._platform, self._stack)

    @property
    def _logs(self) -> PodLogs:
        return PodLogs(self._kubernetes, self._platform.namespace, self._seeing)


@contextmanager
def _asking() -> Iterator[None]:
    """Turns what goes wrong with the API server into the user's words."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        raise PlatformError(
            f"the API server refuses {error.request.method} {error.request.url.path}",
            found=f"{error.response.status_code}: {_said(error.response)}",
            next_step="look at the login, and at what it may do in the cluster",
        ) from None
    except httpx.HTTPError as error:
        raise PlatformError(
            "the API server cannot be reached",
            found=f"{type(error).__name__}: {error}",
            next_step="look at the network, at `cluster.authorized_networks`, and whether the cluster is still there",
        ) from None


def _said(answer: httpx.Response) -> str:
    try:
        answer.read()
        return str(answer.json()["message"])[:600]
    except (ValueError, KeyError, TypeError, httpx.StreamError):
        return answer.reason_phrase
