"""What a stack on GKE is like now, asked of its API server."""

from infra.plan.health import api_url, health_of
from infra.plan.launches import job_launch
from infra.platforms.gke.found import CLUSTER_LABEL, RAY_API, Found, Object, is_head
from infra.platforms.gke.kubernetes_api import Kubernetes, look_up, warnings_about
from infra.platforms.gke.look import Wanted, blocked_by, look, stuck
from infra.platforms.gke.run_found import SUBMITTER
from infra.platforms.gke.runs_seen import SUBMITTED_LABEL, run_seen, step_in
from infra.platforms.gke.schedule import LABEL as SCHEDULE_LABEL
from infra.platforms.gke.schedule import schedule_name
from infra.platforms.gke.slices_there import node_selector, slices_there
from infra.platforms.gke.waiting import Expected, service_url, unanswered
from infra.platforms.state_seen import PoolSeen, RunSeen, ServiceSeen
from infra.stack import GkePlatform, PoolSpec, StackSpec
from workloads.spec import JobSpec, ServiceSpec


class Seeing:
    """Asks. Every method raises `httpx.HTTPError` where the API server cannot be reached or refuses."""

    def __init__(self, kubernetes: Kubernetes, platform: GkePlatform, stack: StackSpec) -> None:
        self._kubernetes, self._platform, self._stack = kubernetes, platform, stack
        self._namespace = platform.namespace

    def pool(self, pool: PoolSpec) -> PoolSeen:
        """A pool."""
        nodes = self._kubernetes.every("/api/v1/nodes", labelSelector=node_selector(self._platform, pool))
        return PoolSeen(
            name=pool.name,
            generation=pool.generation,
            topology=pool.topology,
            slices_there=slices_there(pool, nodes),
            slices_min=pool.slices.min,
            slices_max=pool.slices.max,
        )

    def service(self, service: ServiceSpec) -> ServiceSeen:
        """A service."""
        hosts = self._stack.pool(service.pool).slice.hosts
        wanted = Wanted(service.name, self._namespace, service.replicas.min * hosts)
        seen = ServiceSeen(
            name=service.name,
            pool=service.pool,
            state="starting",
            replicas_ready=0,
            replicas_wanted=service.replicas.min,
            replicas_most=service.replicas.max,
            url=api_url(service, service_url(wanted)),
        )
        found = look_up(self._kubernetes, self._namespace, service.name)
        if found.service is None and service.paused:
            return seen.model_copy(update={"state": "paused"})
        if found.service is None:
            reason = f"there is no RayService {self._namespace}/{service.name}: `up` brings it"
            return seen.model_copy(update={"state": "absent", "reason": reason})
        workers = [pod for pod in found.pods_of(found.coming().get("rayClusterName", "")) if not is_head(pod)]
        running = sum(pod.get("status", {}).get("phase") == "Running" for pod in workers)
        seen = seen.model_copy(update={"replicas_ready": min(running // hosts, service.replicas.max)})
        now = look(wanted, found)
        if now.failure:
            return seen.model_copy(update={"state": "failed", "reason": now.failure})
        if not now.there:
            return seen.model_copy(update={"reason": blocked_by(wanted, found)})
        # Whatever it was told to serve: that it is what the file says now is what `up` waits for.
        if missing := unanswered(self._kubernetes, Expected(wanted, "", "", 0, health_of(service))):
            return seen.model_copy(update={"reason": missing})
        return seen.model_copy(update={"state": "ready"})

    def declared_run(self, job: JobSpec) -> RunSeen:
        """The run of a declared job."""
        run = job_launch(self._stack, job, self._platform.storage).run_name
        found = self._kubernetes.get(self.job_path(run))
        if found is None:
            reason = f"there is no RayJob {self._namespace}/{run}: `up` brings it"
            return RunSeen(name=job.name, run=run, pool=job.pool, state="absent", reason=reason)
        return self._with_reason(run_seen(job.name, found, job.pool), found)

    def scheduled_runs(self, job: JobSpec) -> list[RunSeen]:
        """The runs that a job's schedule has begun, the newest first; before its first time, that it waits."""
        schedule = schedule_name(job)
        begun = self._kubernetes.every(
            f"{RAY_API}/namespaces/{self._namespace}/rayjobs", labelSelector=f"{SCHEDULE_LABEL}={schedule}"
        )
        if begun:
            begun.sort(key=lambda run: str(run["metadata"]["creationTimestamp"]), reverse=True)
            return [self._with_reason(run_seen(job.name, run, job.pool), run) for run in begun]
        seen = RunSeen(name=job.name, run=schedule, pool=job.pool, state="absent")
        there = self._kubernetes.get(f"/apis/batch/v1/namespaces/{self._namespace}/cronjobs/{schedule}")
        if there is None:
            reason = f"there is no CronJob {self._namespace}/{schedule}: `up` brings it"
            return [seen.model_copy(update={"reason": reason})]
        why = "is suspended" if there["spec"].get("suspend") else "has begun no run yet"
        reason = f"its schedule, {job.schedule}, {why}"
        return [seen.model_copy(update={"state": "pending", "reason": reason})]

    def submitted_runs(self) -> list[RunSeen]:
        """The runs that somebody submitted, the oldest first."""
        path = f"{RAY_API}/namespaces/{self._namespace}/rayjobs"
        jobs = self._kubernetes.every(path, labelSelector=SUBMITTED_LABEL)
        jobs.sort(key=lambda job: str(job["metadata"]["creationTimestamp"]))
        return [self._with_reason(run_seen(job["metadata"]["name"], job), job) for job in jobs]

    def runs(self) -> tuple[RunSeen, ...]:
        """All of them."""
        declared = [
            run
            for job in self._stack.jobs
            for run in (self.scheduled_runs(job) if job.schedule else [self.declared_run(job)])
        ]
        return (*declared, *self.submitted_runs())

    def job_path(self, run: str) -> str:
        """Path of a run's RayJob."""
        return f"{RAY_API}/namespaces/{self._namespace}/rayjobs/{run}"

    def submitter(self, run: str) -> str | None:
        """Name of the pod that prints a run's output, once it writes; None where there is none."""
        pods = self._kubernetes.every(f"/api/v1/namespaces/{self._namespace}/pods", labelSelector=f"job-name={run}")
        begun = [pod for pod in pods if pod.get("status", {}).get("phase") not in (None, "Pending")]
        begun.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return str(begun[-1]["metadata"]["name"]) if begun else None

    def waits_for(self, job: Object) -> str:
        """What a RayJob's pods wait for; empty where nothing is wrong with them."""
        cluster = (job.get("status") or {}).get("rayClusterName", "")
        pods = self._kubernetes.every(
            f"/api/v1/namespaces/{self._namespace}/pods", labelSelector=f"{CLUSTER_LABEL}={cluster}"
        )
        about = {cluster, *(pod["metadata"]["name"] for pod in pods)}
        found = Found(None, (), tuple(pods), warnings_about(self._kubernetes, self._namespace, about))
        return stuck(found, cluster)

    def _with_reason(self, seen: RunSeen, job: Object) -> RunSeen:
        if seen.state == "pending" and not seen.reason and (job.get("status") or {}).get("rayClusterName"):
            return seen.model_copy(update={"reason": self.waits_for(job)})
        if seen.state == "running" and (pod := self.submitter(seen.run)):
            log = self._kubernetes.log(self._namespace, pod, SUBMITTER, 40)
            return seen.model_copy(update={"progress": step_in(log)})
        return seen
