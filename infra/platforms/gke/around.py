"""What stands around the Ray clusters of a stack: it comes before them and goes after them."""

import pulumi

from infra.components.disruption_budget import DisruptionBudget
from infra.components.network_policy import NetworkPolicy
from infra.components.services_priority import ServicesPriority
from infra.plan.identity import JOB_LABEL, SERVICE_LABEL
from infra.platforms.gke.gone import Gone
from infra.stack import GkePlatform, StackSpec
from workloads.spec import JobSpec, ServiceSpec


def before_all(platform: GkePlatform, stack: StackSpec, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """What all services share."""
    if not (platform.ray.services_first and stack.services):
        return []
    return [ServicesPriority("services", {"namespace": platform.namespace}, opts)]


def around_service(
    platform: GkePlatform,
    stack: StackSpec,
    service: ServiceSpec,
    login: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """What has to be there before the service's pods, and until they are gone. `login` is as `Ready` takes it."""
    pods = {SERVICE_LABEL: service.name}
    name, made = f"tpu-ray-service-{service.name}", list[pulumi.Resource]()
    if platform.ray.network_policy:
        made.append(_policy(platform, f"service-{service.name}", name, pods, True, opts))
    if platform.ray.disruption_budgets:
        hosts = stack.pool(service.pool).slice.hosts * service.replicas.max
        made.append(
            DisruptionBudget(
                f"service-{service.name}",
                {"namespace": platform.namespace, "object_name": name, "pods": pods, "count": 1 + hosts},
                opts,
            )
        )
    if platform.ray.gcs_fault_tolerance is not None:
        place = {"namespace": platform.namespace, "service": service.name}
        made.append(Gone(service.name, login=login, context=platform.cluster.context, opts=opts, **place))
    return made


def around_job(platform: GkePlatform, job: JobSpec, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """What has to be there before the pods of the job's runs; a new run finds it there."""
    if not platform.ray.network_policy:
        return []
    name = f"tpu-ray-job-{job.name}"
    return [_policy(platform, f"job-{job.name}", name, {JOB_LABEL: job.name}, False, opts)]


def _policy(
    platform: GkePlatform, name: str, object_name: str, pods: dict[str, str], serves: bool, opts: pulumi.ResourceOptions
) -> NetworkPolicy:
    return NetworkPolicy(
        name,
        {
            "namespace": platform.namespace,
            "object_name": object_name,
            "pods": pods,
            "serves": serves,
            "control_plane": platform.network.control_plane if platform.cluster.is_made else None,
            "metrics_from": platform.ray.metrics_from,
        },
        opts,
    )
