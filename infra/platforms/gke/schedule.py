"""What begins the runs of a job with a schedule: a CronJob, and the account that may do so. Pure.

KubeRay's own RayCronJob is not used. Its controller is behind a gate that is off in every release that has it (1.6 and
1.7: pkg/features/features.go) and that GKE's add-on lets nobody turn on; its runs stand in no queue, begin beside one
that still runs, and are not told which run they are, so that each would find the folder of the one before it.
"""

import json

from infra.plan.identity import ACCOUNT
from infra.plan.node_pools import POOL_LABEL
from infra.platforms.gke.cluster import Manifest
from infra.platforms.gke.job_manifest import ray_job
from infra.stack import GkePlatform, StackSpec
from infra.stack.rules_names import CPU_POOL
from workloads.spec import JobSpec
from workloads.spec.run import JOB_VARIABLE, SUBMISSION_VARIABLE, Submission

LABEL = "tpu-ray/schedule"
"""On every run of a schedule: the schedule's name."""
MODULE = "workloads.submit_run"
LATE_S = 3600
"""How much later than its time a run may still begin, where the cluster was away."""


def schedule_name(job: JobSpec) -> str:
    """Name of the CronJob; `<name>-<minutes>` are its Jobs, and its runs have their time in another form, because
    KubeRay gives the Job that hands a run to Ray the run's name."""
    return f"{job.name}-{job.run}"


def schedule_manifests(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> dict[str, Manifest]:
    """Kind to object: the account, what it may do, and the CronJob."""
    name, namespace = schedule_name(job), platform.namespace
    account = f"{ACCOUNT}-{name}"
    mine: Manifest = {"name": account, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    rules = [
        {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["create", "delete", "list"]},
        {"apiGroups": ["batch"], "resources": ["cronjobs"], "resourceNames": [name], "verbs": ["get"]},
    ]
    rbac = "rbac.authorization.k8s.io/v1"
    return {
        "ServiceAccount": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": mine},
        "Role": {"apiVersion": rbac, "kind": "Role", "metadata": mine, "rules": rules},
        "RoleBinding": {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": mine,
            "roleRef": role,
            "subjects": [subject],
        },
        "CronJob": {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "tpu-ray"}},
            "spec": {
                "schedule": job.schedule,
                "timeZone": job.time_zone or "Etc/UTC",
                "suspend": job.suspend,
                "concurrencyPolicy": "Forbid",
                "startingDeadlineSeconds": LATE_S,
                "successfulJobsHistoryLimit": 1,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"spec": {"backoffLimit": 3, "template": _pod(platform, stack, job, account)}},
            },
        },
    }


def _pod(platform: GkePlatform, stack: StackSpec, job: JobSpec, account: str) -> Manifest:
    """The pod that begins a run, of the image that the run has: it asks the API server, and is gone in a second."""
    run, name = ray_job(platform, stack, job), schedule_name(job)
    metadata = run["metadata"]
    assert isinstance(metadata, dict)
    run = {**run, "metadata": {**metadata, "labels": {**metadata["labels"], LABEL: name}}}
    submission = Submission(
        schedule=name, label=LABEL, manifest=json.dumps(run, separators=(",", ":")), keep=job.keep_runs
    )
    container = {
        "name": "submit-run",
        "image": platform.image,
        "command": ["python", "-m", MODULE],
        "env": [
            # Kubernetes reads `$$` as `$`, and `$(NAME)` as another variable.
            {"name": SUBMISSION_VARIABLE, "value": submission.model_dump_json().replace("$", "$$")},
            {
                "name": JOB_VARIABLE,
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}},
            },
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    selector = {"nodeSelector": {POOL_LABEL: CPU_POOL}} if platform.cluster.is_made else {}
    return {"spec": {**selector, "restartPolicy": "Never", "serviceAccountName": account, "containers": [container]}}
