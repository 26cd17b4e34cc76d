"""How a workload is started: the Serve application of a service and the command of a job.

Every platform uses these two functions, so what was tried on one machine is what runs in the cloud.
"""

import shlex

from workloads.spec import JobLaunch, ServiceLaunch
from workloads.spec.job import PLATFORM_KEYS

SERVE_IMPORT_PATH = "workloads.serve.app:build"
DEPLOYMENT = "Replica"
"""Name of its only deployment."""
TRAIN_MODULE = "workloads.train"


def serve_application(launch: ServiceLaunch) -> dict[str, object]:
    """One entry of Serve's `applications` list (schema: ServeApplicationSchema of Ray 2.60).

    The number of replicas stands beside the arguments, so that another number restarts none of them; their other
    options are set inside `build`, from the launch value.
    """
    return {
        "name": launch.service.name,
        "route_prefix": f"/{launch.service.name}",
        "import_path": SERVE_IMPORT_PATH,
        "args": launch.arguments,
        "deployments": [{"name": DEPLOYMENT, "num_replicas": launch.service.replicas}],
    }


def job_entrypoint(launch: JobLaunch) -> str:
    """The shell command of one run: the user's own, or `python -m workloads.train '<launch as JSON>'`."""
    if launch.job.entrypoint is not None:
        return launch.job.entrypoint
    return shlex.join(["python", "-m", TRAIN_MODULE, launch.model_dump_json(exclude={"job": set(PLATFORM_KEYS)})])
