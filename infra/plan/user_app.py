"""The Serve application of a service with `engine: app`: the user's own import path and arguments. Pure."""

from workloads.spec import AppSpec, DeclaredSlices, ServiceLaunch
from workloads.spec.launch import SLICES_VARIABLE


def user_app(launch: ServiceLaunch, engine: AppSpec) -> dict[str, object]:
    """What is imported and with what, as the user wrote it.

    Nothing of ours stands between a request and the application. What the stack file says of its slices is in the
    environment of its processes (`workloads.declared`), so that it is not said a second time in `args`.
    """
    service = launch.service
    declared = DeclaredSlices(slice=launch.slice, pool=service.pool, replicas=service.replicas.max)
    return {
        "import_path": engine.import_path,
        "args": dict(engine.args),
        "runtime_env": {"env_vars": {SLICES_VARIABLE: declared.model_dump_json()}},
    }
