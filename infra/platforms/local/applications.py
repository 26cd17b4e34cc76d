"""The applications of a stack's Serve. Serve's PUT removes what it does not list, so the whole list is kept here."""

import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from infra.platforms.local.cluster import status
from infra.platforms.local.errors import LocalError
from infra.platforms.local.folders import Folders
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.state import ClusterState, locked, write_atomically

PATH = "/api/serve/applications/"
Wanted = dict[str, dict[str, Any]]
GONE_S = 120.0
"""How long Serve may take to end an application: replicas finish what they answer, and lost hosts are waited for."""


def running(stack: str) -> tuple[ClusterState, Dashboard]:
    """State and dashboard of a cluster that lives.

    Raises:
        LocalError: it does not.
    """
    now = status(stack)
    if now.state is None or not now.alive:
        raise LocalError(
            f"the cluster of stack {stack} does not run",
            wanted="all its processes alive",
            found=f"gone: {', '.join(now.dead)}" if now.state else "no cluster",
            next_step="`up` makes it anew",
        )
    return now.state, Dashboard(now.state.dashboard, Folders.of(stack))


def wanted_applications(stack: str) -> Wanted:
    """What Serve was last asked to run, by name."""
    try:
        return cast(Wanted, json.loads(Folders.of(stack).applications_file.read_text()))
    except FileNotFoundError:
        return {}


def put_application(stack: str, application: Mapping[str, Any]) -> None:
    """Add an application, or change the one of that name. The others keep running as they are.

    Raises:
        LocalError: the cluster does not run, or Serve refuses the application; then the list stays as it was.
    """
    _change(stack, lambda wanted: {**wanted, str(application["name"]): dict(application)})


def delete_application(stack: str, name: str, timeout_s: float = GONE_S) -> None:
    """Take an application away and wait until its replicas are; nothing happens where it or the cluster is gone.

    Raises:
        LocalError: Serve still lists it after `timeout_s`.
    """
    if not (status(stack).alive and name in wanted_applications(stack)):
        return
    _change(stack, lambda wanted: {key: value for key, value in wanted.items() if key != name})
    began = time.monotonic()
    while (left := applications(stack).get(name)) is not None:
        if time.monotonic() - began > timeout_s:
            raise LocalError(
                f"service {name} does not end",
                wanted=f"Serve no longer lists it after {timeout_s:.0f} s",
                found=f"{left.get('status')}",
                next_step="`up` or `destroy` again; its replicas hold their slice until then",
            )
        time.sleep(0.2)


def leave_pools(stack: str, kept: Collection[str], say: Callable[[str], None]) -> None:
    """Take away the applications of pools that are not kept, while their hosts still run: so they end in order.

    Raises:
        LocalError: one does not end.
    """
    if not status(stack).alive:
        return
    for name, application in wanted_applications(stack).items():
        pool = application.get("args", {}).get("service", {}).get("pool")
        if pool is not None and pool not in kept:
            say(f"ending service {name}: its pool {pool} goes")
            delete_application(stack, name)


def applications(stack: str) -> dict[str, dict[str, Any]]:
    """Serve's own status of every application, by name."""
    _, dashboard = running(stack)
    return cast(dict[str, dict[str, Any]], dashboard.get(PATH).get("applications", {}))


def _change(stack: str, change: Callable[[Wanted], Wanted]) -> None:
    folders = Folders.of(stack)
    with locked(folders):
        state, dashboard = running(stack)
        wanted = change(wanted_applications(stack))
        dashboard.put(
            PATH,
            {
                # One proxy: all nodes share this machine's address and port.
                "proxy_location": "HeadOnly",
                "http_options": {"host": "127.0.0.1", "port": state.spec.http_port},
                "applications": list(wanted.values()),
            },
        )
        write_atomically(folders.applications_file, json.dumps(wanted, indent=1))
