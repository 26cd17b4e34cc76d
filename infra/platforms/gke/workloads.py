"""The RayServices and RayJobs of a stack, and the waits for the services' answers, inside a running Pulumi program."""

import hashlib
import json
from functools import partial

import pulumi

from infra.components.ray_job import RayJob
from infra.components.ray_service import RayService
from infra.plan.chips import upgrade_strategy
from infra.plan.health import api_url, health_of
from infra.plan.launches import job_launch, service_launch
from infra.plan.mark import mark_of
from infra.plan.workloads import serve_application
from infra.platforms.gke.around import around_job, around_service, before_all, behind
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.manifests import ray_job, ray_service
from infra.platforms.gke.ready_resource import Ready
from infra.platforms.gke.waiting import Expected
from infra.platforms.paused import tell_paused
from infra.stack import GkePlatform, StackSpec
from workloads.spec import EngineSpec, ServiceSpec


def deploy_workloads(stack: StackSpec, login: pulumi.Input[str], opts: pulumi.ResourceOptions) -> None:
    """Declare them, behind `opts`, and export `endpoints` and `jobs`. `login` is as `Ready` takes it."""
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    launches = {job.name: job_launch(stack, job, platform.storage) for job in stack.jobs}
    for job in stack.jobs:
        after = behind(opts, around_job(platform, job, opts))
        RayJob(launches[job.name].run_name, {"manifest": ray_job(platform, stack, job)}, after)
    endpoints: dict[str, pulumi.Output[str]] = {}
    shared = before_all(platform, stack, opts)
    tell_paused(pulumi.get_stack(), stack)
    for service in stack.running_services:
        manifest = ray_service(platform, stack, service)
        beside = upgrade_strategy(stack, service) != "None"
        after = behind(opts, [*shared, *around_service(platform, stack, service, login, opts)])
        made = RayService(service.name, {"manifest": manifest, "beside": beside, "slices": service.replicas}, after)
        ready = Ready(
            service.name,
            login=login,
            context=platform.cluster.context,
            expected=_expected(platform, stack, service),
            uid=made.uid,
            manifest=hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:12],
            opts=pulumi.ResourceOptions(depends_on=[made], protect=opts.protect),
        )
        endpoints[service.name] = ready.url.apply(partial(api_url, service))
    pulumi.export("endpoints", endpoints)
    pulumi.export(
        "jobs",
        {name: {"run": launch.run_name, "export": launch.export_dir} for name, launch in launches.items()},
    )


def _expected(platform: GkePlatform, stack: StackSpec, service: ServiceSpec) -> Expected:
    shape, count = stack.pool(service.pool).slice, service.replicas
    launch = service_launch(stack, service, platform.storage)
    tells_itself = isinstance(service.engine, EngineSpec)
    config_mark = "" if tells_itself else mark_of(serve_application(launch))
    return Expected(
        Wanted(service.name, platform.namespace, count * shape.hosts, config_mark),
        launch.mark if tells_itself else "",
        f"{count} {shape.generation} {shape.topology} slice{'s' if count > 1 else ''} of pool `{service.pool}`",
        float(service.ready_timeout_s),
        health_of(service),
    )
