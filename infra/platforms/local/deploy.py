"""The resources of a `local` stack, declared inside a running Pulumi program."""

import json
from collections.abc import Callable, Mapping
from functools import partial

import pulumi

from infra.plan.health import api_url, health_of
from infra.plan.job_env import job_env
from infra.plan.launches import JOB_MODEL as JOB
from infra.plan.launches import job_launch, model_name, service_launch
from infra.plan.workloads import job_entrypoint, serve_application
from infra.platforms.local.cluster_resource import LocalCluster
from infra.platforms.local.folders import Folders
from infra.platforms.local.job_command import limited
from infra.platforms.local.job_resource import JobFinished, JobRun
from infra.platforms.local.leaving import declared
from infra.platforms.local.model_resource import ModelStaged, models_folder
from infra.platforms.local.readiness import Expected, service_url
from infra.platforms.local.ready_resource import Ready
from infra.platforms.local.secret_env import tell_lacking
from infra.platforms.local.serve_resource import ServeApp
from infra.platforms.local.spec import ClusterSpec
from infra.platforms.paused import tell_paused
from infra.stack import StackSpec
from workloads.spec import AppSpec, JobLaunch, ServiceLaunch, ServiceSpec
from workloads.spec.hub import hub_model

Application = Callable[[ServiceLaunch], Mapping[str, object]]


def deploy(
    stack_name: str,
    stack: StackSpec,
    application_of: Application = serve_application,
    entrypoint_of: Callable[[JobLaunch], str] = job_entrypoint,
) -> None:
    """Declare everything and export `endpoints`, `dashboard`, `jobs` and `curl`."""
    spec = ClusterSpec.of(stack_name, stack)
    folders = Folders.of(stack_name)
    cluster = LocalCluster("cluster", spec)
    storage = str(folders.storage)
    # A schedule begins its runs in the cloud: this machine is not there at night.
    launches = {job.name: job_launch(stack, job, storage) for job in stack.jobs if job.schedule is None}
    # A suspended run is not there; when it is there again it goes on with what it has left.
    going = {name: launch for name, launch in launches.items() if not launch.job.suspend}
    # What Pulumi deletes only at the end of this program must leave its slices to what comes now.
    services = stack.running_services
    all_declared = declared([s.name for s in services], [launch.run_name for launch in going.values()])
    runs = {
        name: JobRun(
            name,
            stack=stack_name,
            run_name=launch.run_name,
            entrypoint=limited(launch.job, entrypoint_of(launch)),
            pool=launch.job.pool,
            env=job_env(launch),
            export_dir=launch.export_dir,
            session=cluster.session,
            declared=all_declared,
            hands_over_slice=_is_full(stack, launch.job.pool),
        )
        for name, launch in going.items()
    }
    served = [s.model.removeprefix(JOB) for s in services if s.model.startswith(JOB)]
    waited_for = [*served, *(name for name, launch in going.items() if launch.job.wait)]
    finished = {
        name: JobFinished(
            name,
            stack=stack_name,
            run_name=runs[name].run_name if name in runs else launches[name].run_name,
            export_dir=launches[name].export_dir,
            timeout_s=launches[name].job.timeout_s,
            needs_export=name in served or launches[name].job.entrypoint is None,
            suspended=name not in runs,
            hands_over_slice=_is_full(stack, launches[name].job.pool),
        )
        for name in dict.fromkeys(waited_for)
    }
    staged = {
        model: ModelStaged(
            f"{named.org}-{named.name}-{named.revision}", model=model, folder=str(models_folder() / named.folder)
        )
        for model in dict.fromkeys(service.model for service in stack.services)
        if (named := hub_model(model))
    }
    endpoints: dict[str, pulumi.Output[str]] = {}
    tell_paused(stack_name, stack)
    tell_lacking(stack_name, stack)
    for service in services:
        application = _application(service, stack, storage, finished, application_of)
        # The session of the service's own entry: so Ready follows it, also where only the application is made anew.
        app = ServeApp(
            service.name,
            stack=stack_name,
            application=application,
            session=cluster.session,
            declared=all_declared,
            hands_over_slice=service.model.startswith(JOB) and _is_full(stack, service.pool),
            opts=pulumi.ResourceOptions(depends_on=[staged[service.model]] if service.model in staged else []),
        )
        if not service.wait:
            url = service_url(spec.http_port, service.name)
            endpoints[service.name] = pulumi.Output.from_input(api_url(service, url))
            continue
        ready = Ready(
            service.name,
            stack=stack_name,
            expected=_expected(service, stack),
            application=application,
            session=cluster.session,
            opts=pulumi.ResourceOptions(depends_on=[app]),
        )
        endpoints[service.name] = ready.url.apply(partial(api_url, service))
    pulumi.export("endpoints", endpoints)
    pulumi.export("dashboard", f"http://127.0.0.1:{spec.dashboard_port}")
    pulumi.export(
        "jobs", {name: {"run": launch.run_name, "export": launch.export_dir} for name, launch in launches.items()}
    )
    chat = next((service for service in services if not isinstance(service.engine, AppSpec)), None)
    pulumi.export("curl", endpoints[chat.name].apply(_curl(chat)) if chat else "")


def _application(
    service: ServiceSpec,
    stack: StackSpec,
    storage: str,
    finished: Mapping[str, JobFinished],
    application_of: Application,
) -> pulumi.Input[str]:
    """The service's Serve application as JSON; for a `job:` model known once the job's model is there."""

    def application(step: str = "") -> str:
        launch = service_launch(stack, service, storage, step, str(models_folder()))
        return json.dumps(application_of(launch), sort_keys=True)

    if not service.model.startswith(JOB):
        return application()
    # The job's end decides: its step is an output, and a new run has a new folder.
    return finished[service.model.removeprefix(JOB)].step.apply(application)


def _expected(service: ServiceSpec, stack: StackSpec) -> Expected:
    shape, count = stack.pool(service.pool).slice, service.replicas.min
    slices = (
        f"{count} free {shape.generation} {shape.topology} slice{'s' if count > 1 else ''} of pool `{service.pool}`"
    )
    timeout_s, health = float(service.ready_timeout_s), health_of(service)
    return Expected(service.name, slices, shape.ray_head_resource, timeout_s, health)


def _is_full(stack: StackSpec, pool: str) -> bool:
    """Whether the pool's services and jobs together want more slices than it has: then one leaves before the next."""
    replicas = sum(service.replicas.max for service in stack.services if service.pool == pool)
    runs = sum(1 for job in stack.jobs if job.pool == pool)
    return replicas + runs > stack.pool(pool).slices.max


def _curl(service: ServiceSpec) -> Callable[[str], str]:
    body = {
        "model": model_name(service.model),
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 32,
    }
    return lambda url: f"curl -s {url}/chat/completions -H 'content-type: application/json' -d '{json.dumps(body)}'"
