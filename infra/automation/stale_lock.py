"""Locks that a killed run left in tpu-ray's own backend.

Pulumi's file backend writes a lock with the pid and host of its holder, and never looks whether that process lives. In
a backend of this machine alone that can be seen, so the next run need not end with advice to cancel by hand.
"""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import psutil


def release_stale_locks(backend: Path, project: str, stack: str, say: Callable[[str], None]) -> None:
    """Remove the stack's locks whose holder ran on this host and is gone; any other lock stays.

    `backend` is the folder of the file backend. A pid that another process has taken since counts as alive: the lock
    stays, and Pulumi's own message names it.
    """
    for lock in (backend / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json"):
        try:
            holder = json.loads(lock.read_text())
            gone = holder["hostname"] == socket.gethostname() and not psutil.pid_exists(int(holder["pid"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if gone:
            say(f"an earlier run (process {holder['pid']}) was ended while it held the stack; its lock is taken away")
            lock.unlink(missing_ok=True)
            lock.with_name(f"{lock.name}.attrs").unlink(missing_ok=True)
