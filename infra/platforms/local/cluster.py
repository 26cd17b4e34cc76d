"""The emulated cluster of one stack: start it, look at it, end it without a trace."""

import itertools
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from infra.platforms.errors import PlatformError
from infra.platforms.local import processes
from infra.platforms.local.folders import Folders, project_folder
from infra.platforms.local.node_logs import why
from infra.platforms.local.nodes import HEAD, NodePorts, head_command, host_command, loopback, node_environment
from infra.platforms.local.ports import pick
from infra.platforms.local.rest import Dashboard
from infra.platforms.local.room import require_room
from infra.platforms.local.spec import ClusterSpec, EmulatedHost
from infra.platforms.local.state import ClusterState, Node, load, locked, save, write_atomically

START_TIMEOUT_S = 240.0
AT_ONCE = max(2, os.cpu_count() or 2)
"""Hosts that are started together. Ray gives a node 30 s to come up, and each start keeps a core busy: six at once on
two cores never did."""
METRICS = ("AUTOSCALER_METRIC_PORT", "DASHBOARD_METRIC_PORT")
"""The head's ports that Ray has no option for; at their usual places they would collide with another Ray's."""

TOO_SLOW = "The current node timed out during startup"
"""How `ray start` ends where its raylet needs longer than Ray's own 30 s (ray/_private/node.py of 2.60)."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Status:
    """What is known about a stack's cluster. `dead` are the roles whose process is gone."""

    state: ClusterState | None
    dead: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        return self.state is not None and not self.dead


def status(stack: str) -> Status:
    """Whether every process of the cluster lives. Takes milliseconds and asks no network.

    Raises:
        PlatformError: the stack belongs to another checkout.
    """
    state = load(Folders.of(stack))
    return Status(state, state.dead_roles() if state else ())


def new_session() -> str:
    """Name of one life of a cluster; whatever runs on it carries it, so that it is made anew with the next one."""
    return secrets.token_hex(6)


def start(spec: ClusterSpec, say: Say, session: str | None = None, timeout_s: float = START_TIMEOUT_S) -> ClusterState:
    """Make the cluster that `spec` describes, from whatever is there: nothing, a part of it, or a dead one.

    Nodes that live and are still wanted stay as they are. Files in the storage folder survive.

    Raises:
        PlatformError: a port is taken, memory is short, Ray is missing, or the stack belongs to another checkout: then
            nothing was touched. Or a node does not come up in time: then what was started by then is ended again, and
            a cluster that was to be changed in place lives on as before, without what it was to lose.
    """
    folders = Folders.of(spec.stack)
    ray = ray_binary()
    until = time.monotonic() + timeout_s
    with locked(folders):
        old = load(folders)
        require_room(spec, old)
        if old and HEAD not in old.dead_roles() and old.spec.same_head(spec) and session in (None, old.session):
            kept = _without_unwanted(old, spec, folders, say)
            try:
                return _start_hosts_patiently(replace(kept, spec=spec), folders, ray, say, until)
            except BaseException:
                _back_to(kept, folders)
                raise
        if old:
            say(f"ending what is left of the cluster of stack {spec.stack}")
            _end(old, folders)
        while True:
            try:
                return _start_all(spec, folders, ray, session or new_session(), say, until)
            except PlatformError as error:
                if not _gave_up(error, until):
                    raise
                say("the machine is busy: a head that Ray gave up is started again")


def stop(stack: str, say: Say) -> bool:
    """End the cluster and remove every file of it, the storage included. False where there was none.

    Raises:
        PlatformError: the stack belongs to another checkout, or a process outlives being killed.
    """
    folders = Folders.of(stack)
    with locked(folders):
        state = load(folders)
        if state is None:
            shutil.rmtree(folders.root, ignore_errors=True)
            return False
        say(f"ending the {len(state.nodes)} Ray nodes of stack {stack}")
        _end(state, folders)
        shutil.rmtree(folders.root)
    return True


def ray_binary() -> Path:
    """The `ray` command: beside this interpreter, else on PATH.

    Raises:
        PlatformError: there is none.
    """
    beside = Path(sys.executable).parent / "ray"
    found = str(beside) if beside.exists() else shutil.which("ray")
    if not found:
        raise PlatformError(
            "Ray is not installed",
            wanted=f"the `ray` command in {beside.parent} or on PATH",
            found="none",
            next_step="`make setup` installs it, or `uv sync --extra infra --extra workloads`",
        )
    return Path(found)


def _start_head(spec: ClusterSpec, folders: Folders, ray: Path, session: str, say: Say, until: float) -> ClusterState:
    shutil.rmtree(folders.ray_temp, ignore_errors=True)
    for folder in (folders.root, folders.logs, folders.storage, folders.ray_temp):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folders.applications_file.unlink(missing_ok=True)
    write_atomically(folders.token_file, secrets.token_hex(32))
    address = loopback(folders.digest, 0)
    gcs, client, agent, *metrics = pick(5, (spec.http_port, spec.dashboard_port))
    state = ClusterState(str(project_folder()), session, spec, f"{address}:{gcs}", ())
    save(folders, state)
    say(f"starting Ray's head; the dashboard will be at {state.dashboard}")
    command = head_command(ray, folders, spec.dashboard_port, NodePorts(agent, gcs, client))
    try:
        state = _launch(
            state, folders, command, HEAD, address, ray, None, dict(zip(METRICS, map(str, metrics), strict=True))
        )
        dashboard = Dashboard(state.dashboard, folders)
        _wait(state, folders, until, "Ray's dashboard answers", say, dashboard.answers, (HEAD,))
    except BaseException:
        _end(load(folders) or state, folders)
        raise
    return state


def _start_all(spec: ClusterSpec, folders: Folders, ray: Path, session: str, say: Say, until: float) -> ClusterState:
    """The head and all hosts; nothing of them where one does not come up."""
    state = _start_head(spec, folders, ray, session, say, until)
    try:
        return _start_hosts_patiently(state, folders, ray, say, until)
    except BaseException:
        _end(load(folders) or state, folders)
        raise


def _gave_up(error: PlatformError, until: float) -> bool:
    """Whether Ray gave a node up that may come up another time: it gives each 30 s on the busiest machine."""
    return TOO_SLOW in error.found and time.monotonic() < until


def _start_hosts_patiently(state: ClusterState, folders: Folders, ray: Path, say: Say, until: float) -> ClusterState:
    """Start the hosts, and those once more that Ray gave up. Without the head none comes up."""
    while True:
        try:
            return _start_hosts(state, folders, ray, say, until)
        except PlatformError as error:
            state = replace(load(folders) or state, spec=state.spec)
            if not _gave_up(error, until) or HEAD in state.dead_roles():
                raise
            say("the machine is busy: a host that Ray gave up is started again")


def _start_hosts(state: ClusterState, folders: Folders, ray: Path, say: Say, until: float) -> ClusterState:
    """Start every wanted host that does not run, a few at a time, and wait until Ray counts all nodes."""
    missing = set(state.dead_roles())
    wanted = [host for host in state.spec.hosts if host.role in missing]
    state = replace(state, nodes=tuple(node for node in state.nodes if node.role not in missing))
    save(folders, state)
    if wanted:
        slices = counted(len({host.slice_name for host in wanted}), "emulated slice")
        say(f"starting {counted(len(wanted), 'host')} of {slices}")
    ports = pick(len(wanted), (state.spec.http_port, state.spec.dashboard_port))
    dashboard = Dashboard(state.dashboard, folders)
    places = zip(wanted, _free_places(state, _counted_by(dashboard)), ports, strict=False)
    while group := list(itertools.islice(places, AT_ONCE)):
        for host, place, port in group:
            command = host_command(ray, folders, host, place, NodePorts(port), state.gcs_address)
            state = _launch(state, folders, command, host.role, loopback(folders.digest, place), ray, host)
        _wait_for_nodes(state, folders, dashboard, until, say, tuple(host.role for host, _, _ in group))
    if not wanted:
        _wait_for_nodes(state, folders, dashboard, until, say, ())
    return state


def _wait_for_nodes(
    state: ClusterState, folders: Folders, dashboard: Dashboard, until: float, say: Say, new: tuple[str, ...]
) -> None:
    """Wait until Ray counts every node that was started; `new` are the roles that may not come up."""
    addresses = {node.address for node in state.nodes}

    def all_there() -> bool:
        return addresses <= _counted_by(dashboard)

    _wait(state, folders, until, f"Ray counts {len(addresses)} nodes", say, all_there, (HEAD, *new))


def _counted_by(dashboard: Dashboard) -> set[str]:
    """Like `alive_addresses`, and empty while Ray does not answer."""
    try:
        return alive_addresses(dashboard)
    except PlatformError:
        return set()


def _free_places(state: ClusterState, counted: set[str]) -> Iterator[int]:
    # A host that has just ended may still be counted: at its address a new one would seem to be there already.
    taken = {node.address for node in state.nodes} | counted
    digest = Folders.of(state.spec.stack).digest
    return (place for place in range(1, 254 * 4) if loopback(digest, place) not in taken)


def alive_addresses(dashboard: Dashboard) -> set[str]:
    """Addresses of the nodes that Ray counts as alive."""
    answer = dashboard.get("/api/v0/nodes?limit=10000")
    return {str(node["node_ip"]) for node in answer["data"]["result"]["result"] if node["state"] == "ALIVE"}


def _without_unwanted(old: ClusterState, spec: ClusterSpec, folders: Folders, say: Say) -> ClusterState:
    """End the hosts that `spec` has no more, or has in another shape; the cluster of what is left."""
    left = old.spec.kept_in(spec)
    wanted = {HEAD, *(host.role for host in left.hosts)}
    kept = replace(old, spec=left, nodes=tuple(node for node in old.nodes if node.role in wanted))
    gone = tuple(node for node in old.nodes if node.role not in wanted)
    if gone:
        say(f"ending {counted(len(gone), 'host')} that the stack no longer has")
        _end_nodes(gone)
        save(folders, kept)
    return kept


def _back_to(kept: ClusterState, folders: Folders) -> None:
    """End what was started beside this cluster, which lives on: its services and runs need not notice."""
    now = load(folders)
    _end_nodes(tuple(node for node in (now.nodes if now else ()) if node not in kept.nodes))
    save(folders, kept)


def _end_nodes(nodes: tuple[Node, ...]) -> None:
    # The session's marker belongs to all nodes of the cluster: only these nodes' own trees are ended.
    _require_ended(processes.end([node.identity for node in nodes], session="-"))


def _launch(
    state: ClusterState,
    folders: Folders,
    command: list[str],
    role: str,
    address: str,
    ray: Path,
    host: EmulatedHost | None,
    extra: Mapping[str, str] | None = None,
) -> ClusterState:
    """Start one node in a session of its own and write it down at once."""
    environment = {**node_environment(os.environ, folders, state.session, ray.parent, host), **(extra or {})}
    with (folders.logs / f"{role}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=project_folder(),
            env=environment,
        )
    # The node outlives this command on purpose: nobody will wait for it, and that deserves no warning.
    process.returncode = 0
    node = Node(role, processes.identify(process.pid), address)
    state = replace(state, nodes=(*state.nodes, node))
    save(folders, state)
    return state


def _wait(
    state: ClusterState,
    folders: Folders,
    until: float,
    what: str,
    say: Say,
    done: Callable[[], bool],
    roles: tuple[str, ...],
) -> None:
    """Poll until `done`, with a line every few seconds; end early when one of the `roles` died."""
    began = last = time.monotonic()
    while not done():
        now = time.monotonic()
        dead = [role for role in state.dead_roles() if role in roles]
        if dead or now > until:
            raise PlatformError(
                f"{dead[0]} of stack {state.spec.stack} ended while it started" if dead else "the cluster is too slow",
                wanted=what,
                found=why(folders, state.node(dead[0] if dead else next((r for r in roles if r != HEAD), HEAD))),
                next_step=f"the whole log was in {folders.logs}; another `up` starts it again",
            )
        if now - last > 5:
            last = now
            say(f"waiting until {what} ({now - began:.0f} s)")
        time.sleep(0.25)


def counted(number: int, what: str) -> str:
    """`1 host`, `2 hosts`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _end(state: ClusterState, folders: Folders) -> None:
    """End all processes and remove what only a running cluster needs; the storage folder and the logs stay."""
    _require_ended(processes.end(state.identities, state.session))
    shutil.rmtree(folders.ray_temp, ignore_errors=True)
    save(folders, replace(state, nodes=()))


def _require_ended(left: list[int]) -> None:
    if left:
        raise PlatformError(
            "processes of the cluster could not be ended",
            wanted="no process left",
            found=f"process {', '.join(map(str, left))}",
            next_step="they may hang in the kernel; look at them with `ps`, then try again",
        )
