"""The RayServices and RayJobs of a stack, and the waits for the services' answers, inside a running Pulumi program."""

import hashlib
import json

import pulumi

from infra.components.ray_job import RayJob
from infra.components.ray_service import RayService
from infra.plan.chips import upgrade_strategy
from infra.plan.launches import job_launch, service_launch
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.manifests import ray_job, ray_service
from infra.platforms.gke.ready_resource import Ready
from infra.platforms.gke.waiting import Expected
from infra.platforms.paused import tell_paused
from infra.stack import GkePlatform, StackSpec
from workloads.spec import ServiceSpec


def deploy_workloads(stack: StackSpec, login: pulumi.Input[str], opts: pulumi.ResourceOptions) -> None:
    """Declare them, behind `opts`, and export `endpoints` and `jobs`. `login` is as `Ready` takes it."""
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    launches = {job.name: job_launch(stack, job, platform.storage) for job in stack.jobs}
    for job in stack.jobs:
        RayJob(launches[job.name].run_name, {"manifest": ray_job(platform, stack, job)}, opts)
    endpoints: dict[str, pulumi.Output[str]] = {}
    tell_paused(pulumi.get_stack(), stack)
    for service in stack.running_services:
        manifest = ray_service(platform, stack, service)
        beside = upgrade_strategy(stack, service) != "None"
        made = RayService(service.name, {"manifest": manifest, "beside": beside}, opts)
        ready = Ready(
            service.name,
            login=login,
            context=platform.cluster.context,
            expected=_expected(platform, stack, service),
            uid=made.uid,
            manifest=hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:12],
            opts=pulumi.ResourceOptions(depends_on=[made], protect=opts.protect),
        )
        endpoints[service.name] = ready.url.apply(lambda url: f"{url}/v1")
    pulumi.export("endpoints", endpoints)
    pulumi.export(
        "jobs",
        {name: {"run": launch.run_name, "export": launch.export_dir} for name, launch in launches.items()},
    )


def _expected(platform: GkePlatform, stack: StackSpec, service: ServiceSpec) -> Expected:
    shape, count = stack.pool(service.pool).slice, service.replicas
    return Expected(
        Wanted(service.name, platform.namespace, count * shape.hosts),
        service_launch(stack, service, platform.storage).mark,
        f"{count} {shape.generation} {shape.topology} slice{'s' if count > 1 else ''} of pool `{service.pool}`",
        float(service.ready_timeout_s),
    )
