"""How a workload is started: the Serve application of a service and the command of a job.

Every platform uses these two functions, so what was tried on one machine is what runs in the cloud.
"""

import shlex

from infra.plan.autoscaling import number_of_replicas
from infra.plan.llm import openai_app
from infra.plan.user_app import user_app
from workloads.spec import AppSpec, JobLaunch, ServiceLaunch, VllmSpec
from workloads.spec.job import PLATFORM_KEYS

SERVE_IMPORT_PATH = "workloads.serve.app:build"
DEPLOYMENT = "Replica"
"""Name of its only deployment."""
TRAIN_MODULE = "workloads.train"
STAGE_MODULE = "workloads.models.stage"


def serve_application(launch: ServiceLaunch) -> dict[str, object]:
    """One entry of Serve's `applications` list (schema: ServeApplicationSchema of Ray 2.60).

    The bundled engine's number of replicas stands beside its arguments, so that another number restarts none of them;
    all else is set inside what is imported, from its arguments.
    """
    name, engine = launch.service.name, launch.service.engine
    entry: dict[str, object] = {"name": name, "route_prefix": f"/{name}"}
    if isinstance(engine, VllmSpec):
        return entry | openai_app(launch, engine)
    if isinstance(engine, AppSpec):
        return entry | user_app(launch, engine)
    deployments = [{"name": DEPLOYMENT, **number_of_replicas(launch.service)}]
    return entry | {"import_path": SERVE_IMPORT_PATH, "args": launch.arguments, "deployments": deployments}


def job_entrypoint(launch: JobLaunch) -> str:
    """The shell command of one run: the user's own, or `python -m workloads.train '<launch as JSON>'`."""
    if launch.job.entrypoint is not None:
        return launch.job.entrypoint
    return shlex.join(["python", "-m", TRAIN_MODULE, launch.model_dump_json(exclude={"job": set(PLATFORM_KEYS)})])
