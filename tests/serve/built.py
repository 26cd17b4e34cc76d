"""Applications with fake engines. Serve imports this file; tests only name it, because Ray Serve warns on import."""

import os
from pathlib import Path
from typing import Any

from ray import serve

from tests.serve.fake import FakeEngine
from workloads.serve.app import application
from workloads.spec import EngineSpec, ServiceLaunch


class DiesOnce(FakeEngine):
    """Takes its process with it the first time that it is made from a model."""

    def __init__(self, model: str, spec: EngineSpec) -> None:
        super().__init__(model, spec)
        died = Path(model) / "died"
        if not died.exists():
            died.touch()
            os._exit(1)


def build(args: dict[str, Any]) -> serve.Application:
    """Like `workloads.serve.app:build`, with the fake engine."""
    return application(ServiceLaunch.model_validate(args), "tests.serve.fake:FakeEngine")


def build_dies_once(args: dict[str, Any]) -> serve.Application:
    """The same with the engine whose first process dies."""
    return application(ServiceLaunch.model_validate(args), "tests.serve.built:DiesOnce")
