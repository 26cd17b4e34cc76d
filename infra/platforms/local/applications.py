"""The applications of a stack's Serve. Serve's PUT removes what it does not list, so the whole list is kept here."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from infra.platforms.errors import PlatformError
from infra.platforms.local.cluster import status
from infra.platforms.local.folders import Folders
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.room import require_http_port
from infra.platforms.local.state import ClusterState, locked, write_atomically

PATH = "/api/serve/applications/"
Wanted = dict[str, dict[str, Any]]
FAILED = ("DEPLOY_FAILED",)
"""States of an application that Serve does not leave by itself."""
GONE_S = 120.0
"""How long Serve may take to end an application: replicas finish what they answer, and lost hosts are waited for."""


def running(stack: str) -> tuple[ClusterState, Dashboard]:
    """State and dashboard of a cluster that lives.

    Raises:
        PlatformError: it does not.
    """
    now = status(stack)
    if now.state is None or not now.alive:
        raise PlatformError(
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

    One that failed is tried again, also where nothing of it changed: its code or a folder may have.

    Raises:
        PlatformError: the cluster does not run, something else has its port, or Serve refuses the application; then the
            list stays as it was.
    """
    name = str(application["name"])
    if wanted_applications(stack).get(name) == application and is_given_up(applications(stack).get(name)):
        delete_application(stack, name)
    _change(stack, lambda wanted: {**wanted, name: dict(application)})


def is_given_up(application: Mapping[str, Any] | None) -> bool:
    """Whether Serve would not try this version again when it is put as it is.

    It keeps the failure of a version whose replicas did not start (deployment_state.py, `_terminally_failed`). One that
    could not even be built has no deployments and is built anew.
    """
    return bool(application and application.get("status") in FAILED and application.get("deployments"))


def delete_application(stack: str, name: str, timeout_s: float = GONE_S) -> None:
    """Take an application away and wait until its replicas are; nothing happens where it or the cluster is gone.

    Raises:
        PlatformError: Serve still lists it after `timeout_s`.
    """
    if not (status(stack).alive and name in wanted_applications(stack)):
        return
    _change(stack, lambda wanted: {key: value for key, value in wanted.items() if key != name})
    began = time.monotonic()
    while (left := applications(stack).get(name)) is not None:
        if time.monotonic() - began > timeout_s:
            raise PlatformError(
                f"service {name} does not end",
                wanted=f"Serve no longer lists it after {timeout_s:.0f} s",
                found=f"{left.get('status')}",
                next_step="`up` or `destroy` again; its replicas hold their slice until then",
            )
        time.sleep(0.2)


def applications(stack: str) -> dict[str, dict[str, Any]]:
    """Serve's own status of every application, by name."""
    _, dashboard = running(stack)
    return cast(dict[str, dict[str, Any]], dashboard.get(PATH).get("applications", {}))


def _change(stack: str, change: Callable[[Wanted], Wanted]) -> None:
    folders = Folders.of(stack)
    with locked(folders):
        state, dashboard = running(stack)
        before = wanted_applications(stack)
        if not before:
            require_http_port(state)
        wanted = change(before)
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
