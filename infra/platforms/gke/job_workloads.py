"""The runs of a stack on GKE, and the waits for those that are waited for, inside a running Pulumi program."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_gcp as gcp

from infra.components.ray_job import RayJob
from infra.components.scheduled_job import ScheduledJob
from infra.plan.job_changes import settings
from infra.plan.launches import JOB_MODEL
from infra.platforms.gke.around import around_job
from infra.platforms.gke.job_finished import JobFinished
from infra.platforms.gke.job_manifest import hands_over_slice, ray_job
from infra.platforms.gke.launches import export_url, job_launch
from infra.platforms.gke.order import after
from infra.platforms.gke.run_look import WantedRun
from infra.platforms.gke.run_settings import RunSettings
from infra.platforms.gke.run_waiting import SLACK_S, ExpectedRun
from infra.platforms.gke.schedule import schedule_manifests
from infra.stack import GkePlatform, StackSpec
from workloads.spec import JobSpec, ServiceSpec


@dataclass
class Runs:
    """What services need to know of the runs whose models they serve."""

    steps: dict[str, pulumi.Output[str]] = field(default_factory=dict)
    """Job to the exported checkpoint's step, known once its run has succeeded."""
    taken_from: dict[str, pulumi.Resource] = field(default_factory=dict)
    """Job to its run, where a service of its model has the slice between two runs."""

    def step(self, service: ServiceSpec) -> pulumi.Output[str]:
        """The version of the service's model; empty where no job makes it."""
        return self.steps.get(service.model.removeprefix(JOB_MODEL), pulumi.Output.from_input(""))

    def behind(self, opts: pulumi.ResourceOptions, service: ServiceSpec) -> pulumi.ResourceOptions:
        """The options of the service, which gives the slice back before the next run begins: that one needs it."""
        run = self.taken_from.get(service.model.removeprefix(JOB_MODEL))
        if run is None:
            return opts
        return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(replace_with=[run], depends_on=[run]))


def deploy_jobs(
    stack: StackSpec,
    login: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    google: pulumi.ProviderResource | None = None,
) -> Runs:
    """Declare them, behind `opts`. `login` is as `Ready` takes it; with `google` the bucket is read."""
    platform, runs = stack.platform, Runs()
    assert isinstance(platform, GkePlatform)
    served = {s.model.removeprefix(JOB_MODEL) for s in stack.services if s.model.startswith(JOB_MODEL)}
    for job in stack.jobs:
        behind = after(opts, *around_job(platform, job, opts))
        if job.schedule is not None:
            ScheduledJob(job.name, {"manifests": schedule_manifests(platform, stack, job)}, behind)
            continue
        # Not protected: a run is replaced by the next one, and what it leaves is in the bucket.
        mine = pulumi.ResourceOptions.merge(behind, pulumi.ResourceOptions(protect=False))
        made = RayJob(job.name, {"manifest": ray_job(platform, stack, job)}, mine)
        RunSettings(
            job.name,
            run=f"{job.name}-{job.run}",
            uid=made.uid,
            settings=settings(stack, job),
            opts=pulumi.ResourceOptions(depends_on=[made]),
        )
        if job.name in served and hands_over_slice(stack, job):
            runs.taken_from[job.name] = made.run
        if job.name not in served and not job.wait:
            continue
        finished = JobFinished(
            job.name,
            login=login,
            context=platform.cluster.context,
            expected=_expected(platform, stack, job),
            uid=made.uid,
            export=export_url(platform, stack, job),
            opts=pulumi.ResourceOptions(depends_on=[made]),
        )
        if job.name in served:
            runs.steps[job.name] = _step(platform, job, finished.exported, google)
    return runs


def _expected(platform: GkePlatform, stack: StackSpec, job: JobSpec) -> ExpectedRun:
    shape, launch = stack.pool(job.pool).slice, job_launch(platform, stack, job)
    return ExpectedRun(
        WantedRun(launch.run_name, platform.namespace, shape.hosts),
        f"1 {shape.generation} {shape.topology} slice of pool `{job.pool}`",
        job.timeout_s * (job.retries + 1) + SLACK_S,
    )


def _step(
    platform: GkePlatform, job: JobSpec, exported: pulumi.Output[str], google: pulumi.ProviderResource | None
) -> pulumi.Output[str]:
    """The step in the run's `export.json`. Read from the bucket, where it is as long as the model: the log that also
    tells it goes with its pod.
    """
    opts = pulumi.InvokeOptions(provider=google)
    name = exported.apply(_object)
    bucket = platform.storage.removeprefix("gs://").partition("/")[0]
    # First whether it is there: reading what is not ends the program in the provider's words.
    listed = gcp.storage.get_bucket_objects_output(bucket=bucket, prefix=name, opts=opts)
    found = pulumi.Output.all(listed.bucket_objects, name).apply(_present(job))
    content: pulumi.Output[str] = gcp.storage.get_bucket_object_content_output(
        bucket=bucket, name=found, opts=opts
    ).content
    return content.apply(_read(job))


def _object(exported: str) -> str:
    """The object of `gs://<bucket>/<folder>`'s export.json."""
    return exported.removeprefix("gs://").partition("/")[2] + "/export.json"


def _present(job: JobSpec) -> Callable[[list[Any]], str]:
    def present(found: list[Any]) -> str:
        objects, name = found
        if not any(one["name"] == name for one in objects):
            raise pulumi.RunError(
                f"tpu-ray:jobs: run {job.name}-{job.run} left no model\n"
                f"  wanted: {name} in the bucket\n"
                "  next:   write it last, with the model's files beside it, and begin the run again with another `run:`"
            )
        return str(name)

    return present


def _read(job: JobSpec) -> Callable[[str], str]:
    def read(content: str) -> str:
        try:
            return str(json.loads(content)["step"])
        except (ValueError, KeyError, TypeError):
            raise pulumi.RunError(
                f"tpu-ray:jobs: export.json of run {job.name}-{job.run} has no `step`\n  found:  {content[:200]}"
            ) from None

    return read
