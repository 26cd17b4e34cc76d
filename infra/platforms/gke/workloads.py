"""The RayServices and RayJobs of a stack, and the waits for the services' answers, inside a running Pulumi program."""

from collections.abc import Callable
from functools import partial

import pulumi

from infra.components.ray_service import RayService
from infra.plan.chips import kept_beside, one_after_another, upgrade_strategy
from infra.plan.health import api_url, health_of
from infra.plan.mark import digest, mark_of
from infra.platforms.gke.around import around_service, before_all
from infra.platforms.gke.cluster import Manifest
from infra.platforms.gke.job_workloads import deploy_jobs
from infra.platforms.gke.launches import export_url, job_launch, service_launch
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.manifests import application_of, ray_service
from infra.platforms.gke.models import deploy_models
from infra.platforms.gke.order import after
from infra.platforms.gke.ready_resource import Ready
from infra.platforms.gke.waiting import Expected, service_url
from infra.platforms.paused import tell_paused
from infra.stack import GkePlatform, StackSpec
from workloads.spec import EngineSpec, ServiceSpec


def deploy_workloads(
    stack: StackSpec,
    login: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    google: pulumi.ProviderResource | None = None,
) -> None:
    """Declare them, behind `opts`, and export `endpoints` and `jobs`. `login` is as `Ready` takes it; `google` reads
    what runs have left in the bucket.
    """
    platform = stack.platform
    assert isinstance(platform, GkePlatform)
    runs = deploy_jobs(stack, login, opts, google)
    models = deploy_models(platform, stack, opts)
    endpoints: dict[str, pulumi.Output[str]] = {}
    shared = before_all(platform, stack, opts)
    tell_paused(pulumi.get_stack(), stack)
    before_it: dict[str, pulumi.Resource] = {}
    for service in stack.running_services:
        told = runs.step(service).apply(_told(platform, stack, service))
        manifest = ray_service(platform, stack, service)
        beside = kept_beside(stack, service) if upgrade_strategy(stack, service) != "None" else 0
        spec = {**_spec(manifest), "serveConfigV2": told["serveConfigV2"]}
        folder = service_launch(platform, stack, service).model
        wants = [models[folder]] if folder in models else []
        # Where there are not the slices for all of them at once, the next one rolls out when this one has.
        waits = one_after_another(stack, stack.pool(service.pool))
        turn = [before_it[service.pool]] if waits and service.pool in before_it else []
        behind = after(opts, *shared, *wants, *turn, *around_service(platform, stack, service, login, opts))
        made = RayService(
            service.name,
            {"manifest": {**manifest, "spec": spec}, "beside": beside},
            runs.behind(behind, service),
        )
        expected = _expected(platform, stack, service)
        if not service.wait:
            endpoints[service.name] = pulumi.Output.from_input(api_url(service, service_url(expected.wanted)))
            continue
        ready = Ready(
            service.name,
            login=login,
            context=platform.cluster.context,
            expected=expected,
            mark=told["mark"],
            config_mark=told["config_mark"],
            uid=made.uid,
            manifest=told["manifest"],
            opts=pulumi.ResourceOptions(depends_on=[made], protect=opts.protect),
        )
        before_it[service.pool] = ready
        endpoints[service.name] = ready.url.apply(partial(api_url, service))
    pulumi.export("endpoints", endpoints)
    pulumi.export(
        "jobs",
        {
            job.name: {
                "run": job_launch(platform, stack, job).run_name,
                "export": export_url(platform, stack, job),
            }
            for job in stack.jobs
            if job.schedule is None
        },
    )


def _told(platform: GkePlatform, stack: StackSpec, service: ServiceSpec) -> Callable[[str], dict[str, str]]:
    """What depends on the version of a job's model: the Serve config, the marks it is known by, and the manifest's."""

    def told(model_version: str) -> dict[str, str]:
        manifest = ray_service(platform, stack, service, model_version)
        expected = _expected(platform, stack, service, model_version)
        return {
            "serveConfigV2": str(_spec(manifest)["serveConfigV2"]),
            "mark": expected.mark,
            "config_mark": expected.wanted.mark,
            "manifest": digest(manifest),
        }

    return told


def _spec(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    return spec


def _expected(platform: GkePlatform, stack: StackSpec, service: ServiceSpec, model_version: str = "") -> Expected:
    shape, count = stack.pool(service.pool).slice, service.replicas.min
    launch = service_launch(platform, stack, service, model_version)
    tells_itself = isinstance(service.engine, EngineSpec)
    config_mark = "" if tells_itself else mark_of(application_of(platform, stack, service, model_version))
    return Expected(
        Wanted(service.name, platform.namespace, count * shape.hosts, config_mark),
        launch.mark if tells_itself else "",
        f"{count} {shape.generation} {shape.topology} slice{'s' if count > 1 else ''} of pool `{service.pool}`",
        float(service.ready_timeout_s),
        health_of(service),
    )
