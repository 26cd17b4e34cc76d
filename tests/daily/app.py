"""A small Serve application of a user's, which says what it does."""

import logging

from ray import serve
from starlette.requests import Request

logger = logging.getLogger("ray.serve")


@serve.deployment
class Hello:
    def __init__(self, word: str) -> None:
        if word == "never":
            raise ValueError("there is no such word")
        self._word = word
        logger.info("this replica says %s", word)

    async def __call__(self, request: Request) -> str:
        logger.info("asked for %s", request.url.path)
        return self._word


def build(args: dict[str, str]) -> serve.Application:
    pool = {f"pool:{args['pool']}": 1}
    placed = Hello.options(ray_actor_options={"num_cpus": 0.5, "resources": pool})  # type: ignore[attr-defined]
    return placed.bind(args["word"])  # type: ignore[no-any-return]
