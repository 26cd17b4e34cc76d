"""A Serve application without a model, for tests of everything around it."""

import os
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve

from workloads.reserve import reserve_slice
from workloads.spec import ServiceLaunch

api = FastAPI()


def ready_file() -> Path:
    """What some applications miss until a test makes it."""
    return Path(os.environ["TPU_RAY_HOME"]) / "ready"


def require_ready() -> None:
    if not ready_file().exists():
        raise FileNotFoundError(f"no {ready_file()}")


@serve.deployment
@serve.ingress(api)
class Null:
    def __init__(self, args: dict[str, Any]) -> None:
        self._args = args
        model = args["model"]
        if model.startswith("/") and not os.path.exists(model):  # noqa: PTH110
            raise FileNotFoundError(f"no model at {model}")
        if model == "package:attr_two_when_ready":
            require_ready()
        if model == "package:reserves":
            launch = ServiceLaunch.model_validate(args)
            self._held = reserve_slice(launch.slice, launch.service.pool, launch.service.reserve_timeout_s)

    @api.get("/health")
    def health(self) -> dict[str, bool]:
        return {"ok": True}

    @api.get("/v1/args")
    def args(self) -> dict[str, Any]:
        return {**self._args, "pid": os.getpid(), "topology": os.environ["TPU_TOPOLOGY"]}


def build(args: dict[str, Any]) -> serve.Application:
    pool = {f"pool:{args['service']['pool']}": 1}
    placed = Null.options(ray_actor_options={"num_cpus": 0.5, "resources": pool})  # type: ignore[attr-defined]
    return placed.bind(args)  # type: ignore[no-any-return]


def two(args: dict[str, Any]) -> serve.Application:
    """Two replicas, so that one lives on while the other cannot be replaced."""
    pool = {f"pool:{args['service']['pool']}": 1}
    placed = Null.options(  # type: ignore[attr-defined]
        num_replicas=2, max_constructor_retry_count=2, ray_actor_options={"num_cpus": 0.5, "resources": pool}
    )
    return placed.bind(args)  # type: ignore[no-any-return]


two_when_ready = two
