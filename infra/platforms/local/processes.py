"""Which processes are ours: by recorded identity, never by name."""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

MARKER = "TPU_RAY_SESSION"
"""Environment variable that every process of a cluster inherits; its value is the cluster's session."""


@dataclass(frozen=True)
class Identity:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    start_ticks: int
    """Clock ticks from boot to the start of the process; unlike a date it does not move with the clock."""
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process runs (a zombie does not)."""
        return self.boot_id == boot_id() and _stat(self.pid) == (self.start_ticks, True)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity:
    """The identity of a running process. Raises ProcessLookupError where there is none."""
    found = _stat(pid)
    if found is None:
        raise ProcessLookupError(pid)
    return Identity(pid, found[0], boot_id())


def _stat(pid: int) -> tuple[int, bool] | None:
    """(start in ticks, whether it runs) of a process, None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[19]), fields[0] not in ("Z", "X")


def members(leaders: Iterable[Identity], session: str) -> tuple[psutil.Process, ...]:
    """Every process of a cluster: the recorded leaders that live, their descendants, and those that carry the marker.

    Ray's workers overwrite their environment when they set their title, so they are found as descendants or as members
    of a leader's session; a job's own command leaves that session, but keeps the marker.
    """
    found: dict[int, psutil.Process] = {}
    known = {leader.pid: leader for leader in leaders if leader.boot_id == boot_id()}
    for leader in known.values():
        if leader.alive():
            process = psutil.Process(leader.pid)
            found[process.pid] = process
            try:
                found.update({child.pid: child for child in process.children(recursive=True)})
            except psutil.NoSuchProcess:
                continue
    for process in psutil.process_iter():
        if process.pid not in found and process.pid != os.getpid() and _belongs(process, known, session):
            found[process.pid] = process
    return tuple(found.values())


def _belongs(process: psutil.Process, leaders: dict[int, Identity], session: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        leader = leaders.get(os.getsid(process.pid))
        if leader is not None and _session_is_ours(leader):
            return True
        return process.environ().get(MARKER) == session
    except (psutil.Error, OSError):
        return False


def _session_is_ours(leader: Identity) -> bool:
    """A session keeps its number from being reused: it is foreign only if a later process leads it."""
    now = _stat(leader.pid)
    return now is None or now[0] == leader.start_ticks


def end(leaders: Iterable[Identity], session: str, *, grace_s: float = 4.0, deadline_s: float = 30.0) -> list[int]:
    """End all of a cluster's processes; gives back those that are still there when the deadline has passed.

    The leaders are asked first and end their own children; what is left after `grace_s` is killed.
    """
    leaders = tuple(leaders)
    until = time.monotonic() + deadline_s
    ours = {process.pid: process for process in members(leaders, session)}
    for leader in leaders:
        if leader.alive():
            _signal(psutil.Process(leader.pid), signal.SIGTERM)
    psutil.wait_procs(list(ours.values()), timeout=grace_s)
    while True:
        ours.update({process.pid: process for process in members(leaders, session)})
        left = [process for process in ours.values() if _runs(process)]
        if not left or time.monotonic() > until:
            return [process.pid for process in left]
        for process in left:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(left, timeout=1.0)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
