"""From a stack to the one value that each service and each run gets. Pure."""

from infra.stack import LocalPlatform, StackSpec
from workloads.spec import JobLaunch, JobSpec, ServiceLaunch, ServiceSpec
from workloads.spec.hub import hub_model
from workloads.spec.versions import LOCKED, Versions, installed

JOB_MODEL = "job:"


def model_name(model: str) -> str:
    """What clients call a model: the last word of `package:x`, `job:x`, `hf:org/x@revision` or a path."""
    if named := hub_model(model):
        return named.name
    name = model.rpartition(":")[2].rstrip("/").rpartition("/")[2]
    return name.removesuffix(".gguf") or model


def versions(stack: StackSpec) -> Versions:
    """What the processes of a stack have to find: in an image what the lock file says, on this machine what is here."""
    if isinstance(stack.platform, LocalPlatform):
        return installed()
    return LOCKED.model_copy(update={"ray": stack.platform.ray_version})


def job_launch(stack: StackSpec, job: JobSpec, storage: str) -> JobLaunch:
    """The value of a job's run. `storage` is the folder or bucket that all hosts share."""
    # `gs://bucket//run` would be another place than `gs://bucket/run`.
    return JobLaunch(job=job, slice=stack.pool(job.pool).slice, storage=storage.rstrip("/"), versions=versions(stack))


def service_launch(
    stack: StackSpec, service: ServiceSpec, storage: str, model_version: str = "", models: str = ""
) -> ServiceLaunch:
    """The value of a service's replicas. A `job:` model is where that job's run puts its export below `storage`, a
    model of the hub where it is staged below `models`; absent, that is `<storage>/models`.

    `model_version` is the exported step of a `job:` model.
    """
    model = service.model
    if model.startswith(JOB_MODEL):
        model = job_launch(stack, stack.job(model.removeprefix(JOB_MODEL)), storage).export_dir
    elif named := hub_model(model):
        model = f"{models or storage.rstrip('/') + '/models'}/{named.folder}"
    return ServiceLaunch(
        service=service,
        slice=stack.pool(service.pool).slice,
        model=model,
        model_name=model_name(service.model),
        model_version=model_version,
        versions=versions(stack),
    )
