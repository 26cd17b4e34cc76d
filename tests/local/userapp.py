"""A user's own Serve application: it takes its slices as the stack file declares them, and greets."""

import asyncio
import os
from typing import Any

from fastapi import FastAPI
from ray import serve

from workloads.declared import declared_slices
from workloads.reserve import reserve_slice

api = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0})
@serve.ingress(api)
class Greeter:
    def __init__(self, greeting: str) -> None:
        mine = declared_slices()
        self._held = reserve_slice(mine.slice, mine.pool, timeout_s=60, holder="greeter")
        self._greeting = greeting

    @api.get("/greeting")
    async def greeting(self, after_s: float = 0) -> dict[str, Any]:
        await asyncio.sleep(after_s)
        return {"greeting": self._greeting, "slice": self._held.name, "pid": os.getpid()}


def build(args: dict[str, Any]) -> serve.Application:
    """`args` as in the stack file."""
    if "greeting" not in args:
        raise KeyError("args.greeting")
    return Greeter.bind(args["greeting"])  # type: ignore[no-any-return,attr-defined]
