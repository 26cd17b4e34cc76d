"""The environment of a run, the same on every platform. Pure."""

from workloads.spec import DeclaredRun, JobLaunch
from workloads.spec.run import LAUNCH_VARIABLE


def job_env(launch: JobLaunch) -> dict[str, str]:
    """Variable to value, on all hosts of the run. A command of the user's own also gets the run and its slice."""
    job = launch.job
    if job.entrypoint is None:
        return dict(job.env)
    run = DeclaredRun(
        run=launch.run_name,
        pool=job.pool,
        slice=launch.slice,
        folder=f"{launch.storage}/{launch.run_name}",
        export=launch.export_dir,
    )
    return {**job.env, LAUNCH_VARIABLE: run.model_dump_json()}
