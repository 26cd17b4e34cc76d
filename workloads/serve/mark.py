"""A Serve application that does nothing: the name of its deployment tells which config Serve has.

Import path for Serve: `workloads.serve.mark:build`.
"""

from typing import Any

from ray import serve


class Mark:
    """Never made: the deployment has no replicas."""


def build(args: dict[str, Any]) -> serve.Application:
    """The application whose one deployment is called `args["mark"]`."""
    deployment: Any = serve.deployment(
        Mark,
        name=str(args["mark"]),
        autoscaling_config={"min_replicas": 0, "initial_replicas": 0, "max_replicas": 1},
        ray_actor_options={"num_cpus": 0},
    )
    bound: serve.Application = deployment.bind()
    return bound
