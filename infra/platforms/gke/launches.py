"""The launch values of a gke stack: those of `infra.plan.launches`, with each `gs://` as a path in the pods. Pure."""

from infra.plan import launches
from infra.platforms.gke.bucket_volume import in_pods
from infra.platforms.gke.code import service_code
from infra.stack import GkePlatform, StackSpec
from workloads.spec import JobLaunch, JobSpec, ServiceLaunch, ServiceSpec


def service_launch(
    platform: GkePlatform, stack: StackSpec, service: ServiceSpec, model_version: str = ""
) -> ServiceLaunch:
    """The value of a service's replicas. `model_version` is the exported step of a `job:` model."""
    launch = launches.service_launch(stack, service, in_pods(platform.storage), model_version)
    code = service_code(platform, service)
    return launch.model_copy(update={"model": in_pods(launch.model), "code": code.digest[:12] if code else ""})


def job_launch(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> JobLaunch:
    """The value of a job's run."""
    launch = launches.job_launch(stack, job, in_pods(platform.storage))
    data = job.data.model_copy(update={"source": in_pods(job.data.source)})
    return launch.model_copy(update={"job": job.model_copy(update={"data": data})})


def export_url(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> str:
    """Where a job's run leaves its model, as people outside the cluster find it: `gs://...`."""
    return launches.job_launch(stack, job, platform.storage).export_dir
