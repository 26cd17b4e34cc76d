"""The RayJob of a job's run. Pure."""

import re
import shlex

import yaml

from infra.plan.chips import in_use
from infra.plan.identity import QUEUE, QUEUE_LABEL
from infra.plan.job_env import job_env
from infra.plan.launches import JOB_MODEL
from infra.plan.workloads import job_entrypoint
from infra.platforms.gke import guarded
from infra.platforms.gke.cluster import Manifest, ray_cluster
from infra.platforms.gke.code import job_code, runtime_env
from infra.platforms.gke.launches import job_launch
from infra.platforms.gke.pod_env import with_env
from infra.stack import GkePlatform, StackSpec
from workloads.spec import JobLaunch, JobSpec
from workloads.spec.run import TIME_OF_RUN

FINISHED_TTL_S = 300
"""How long a finished run's Ray cluster, and so its slice, stays for a look at its logs."""
COMMAND_VARIABLE = "TPU_RAY_ENTRYPOINT"

PLAIN = re.compile(r"[-\w@%+=:,./ ]+", re.ASCII)
"""Commands that mean the same to every shell that reads them."""
BY_VARIABLE = shlex.join(["python", "-c", f"import os; os.execlp('sh', 'sh', '-c', os.environ['{COMMAND_VARIABLE}'])"])


def ray_job(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> Manifest:
    """The RayJob of a job's run; its name holds the run, because KubeRay starts nothing when the spec changes.

    Of a job with a schedule it is the pattern of its runs: `TIME_OF_RUN` stands for each one's time.
    """
    pool, launch = stack.pool(job.pool), launch_of(platform, stack, job)
    entrypoint, env = job_entrypoint(launch), job_env(launch)
    if job.entrypoint is not None and not PLAIN.fullmatch(job.entrypoint):
        # Two more shells read it than on one machine: that of the submitter, whose `ray job submit` joins the words for
        # that of the head by the rules of Windows. `a && b` would run b in the submitter.
        entrypoint, env = BY_VARIABLE, {**env, COMMAND_VARIABLE: job.entrypoint}
    queued, code = pool.capacity == "queued", runtime_env(platform, job_code(platform, job))
    cluster = with_env(ray_cluster(platform, pool, 1), env, job.secret_env)
    labels = {"app.kubernetes.io/managed-by": "tpu-ray", **({QUEUE_LABEL: QUEUE} if queued else {})}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": launch.run_name, "namespace": platform.namespace, "labels": labels},
        "spec": {
            "entrypoint": entrypoint,
            **({"runtimeEnvYAML": yaml.safe_dump(code)} if code else {}),
            "submissionMode": "K8sJobMode",
            # The recipe restarts from its checkpoint by itself; a retry is a new cluster on top of that.
            "backoffLimit": job.retries,
            "activeDeadlineSeconds": job.timeout_s,
            # Without these two a finished run keeps its slice, and its bill, for ever.
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": keep_cluster_s(stack, job),
            # Of a queued run Kueue writes it. Of a scheduled job it is the schedule that stops.
            **({} if queued or job.schedule else {"suspend": job.suspend}),
            "submitterPodTemplate": guarded.submitter(platform, job.name),
            "rayClusterSpec": guarded.of_job(platform, cluster, job.name),
        },
    }


def launch_of(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> JobLaunch:
    """The value of a job's run; of a scheduled one with `TIME_OF_RUN` in its name."""
    if job.schedule is not None:
        job = job.model_copy(update={"run": f"{job.run}-{TIME_OF_RUN}"})
    return job_launch(platform, stack, job)


def keep_cluster_s(stack: StackSpec, job: JobSpec) -> int:
    """How long a finished run's cluster stays."""
    if job.keep_cluster_s is not None:
        return job.keep_cluster_s
    return 0 if hands_over_slice(stack, job) else FINISHED_TTL_S


def hands_over_slice(stack: StackSpec, job: JobSpec) -> bool:
    """Whether a service of the run's model waits for the very slice that the run has: the pool holds not both."""
    pool = stack.pool(job.pool)
    served = any(service.model == f"{JOB_MODEL}{job.name}" and service.pool == job.pool for service in stack.services)
    return served and in_use(stack, pool) > pool.slices.max
