"""Services and runs that leave before the rest changes: they may hold the slice that something new waits for.

Pulumi deletes only when the program has ended, and a program that waits for such a slice never does.
"""

import json
import threading
from collections.abc import Callable, Iterable
from typing import cast

from infra.platforms.local import jobs
from infra.platforms.local.applications import delete_application, wanted_applications
from infra.platforms.local.cluster import status
from infra.platforms.local.spec import ClusterSpec

Say = Callable[[str], None]
_ONE_AT_A_TIME = threading.Lock()
"""The engine makes several resources at once, in threads of one provider: the second waits until all has left."""


def declared(services: Iterable[str], runs: Iterable[str]) -> str:
    """What a stack file declares, as a property of its resources. The same text whatever the order."""
    return json.dumps({"services": sorted(services), "runs": sorted(runs)})


def leave_undeclared(stack: str, kept: str, say: Say) -> None:
    """End services and runs that the stack file no longer has; `kept` is what `declared` gave.

    Raises:
        PlatformError: one does not end.
    """
    if not status(stack).alive:
        return
    names = cast(dict[str, list[str]], json.loads(kept))
    with _ONE_AT_A_TIME:
        for name in set(wanted_applications(stack)) - set(names["services"]):
            say(f"ending service {name}: the stack no longer has it")
            delete_application(stack, name)
        for run in jobs.going(stack):
            if run.name not in names["runs"]:
                say(f"ending run {run.name}: the stack no longer has it")
                jobs.end(stack, run.name)


def leave_pools(spec: ClusterSpec, say: Say) -> None:
    """End services and runs of pools that go or change their shape, while their hosts still run: so they end in order.

    Raises:
        PlatformError: one does not end.
    """
    now = status(spec.stack)
    if now.state is None or not now.alive:
        return
    kept = {pool.name for pool in now.state.spec.kept_in(spec).pools}
    after = {pool.name for pool in spec.pools}

    def why(pool: str) -> str:
        return f"its pool {pool} changes its slices" if pool in after else f"its pool {pool} goes"

    for name, application in wanted_applications(spec.stack).items():
        pool = application.get("args", {}).get("service", {}).get("pool")
        if pool is not None and pool not in kept:
            say(f"ending service {name}: {why(pool)}")
            delete_application(spec.stack, name)
    for run in jobs.going(spec.stack):
        if run.pool not in kept:
            say(f"ending run {run.name}: {why(run.pool)}")
            jobs.end(spec.stack, run.name)
