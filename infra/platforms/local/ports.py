"""Ports: those of the stack file must be free, the others are picked."""

import random
import socket
from collections.abc import Iterable

import psutil

from infra.platforms.errors import PlatformError

PICKED_FROM = range(15000, 30000)


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a listener could be opened there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        # Without this a port whose last connection ended a minute ago would count as taken.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
            trial.listen(1)
        except OSError:
            return False
    return True


def pick(count: int, avoid: Iterable[int] = ()) -> list[int]:
    """`count` different ports that are free on every address now, none of `avoid`.

    They lie below the range that the kernel gives to outgoing connections, so that none is taken by a connection
    between this choice and its use.
    """
    taken = set(avoid)
    found: list[int] = []
    for port in random.SystemRandom().sample(PICKED_FROM, len(PICKED_FROM)):
        if len(found) == count:
            return found
        if port not in taken and is_free(port, "0.0.0.0"):
            found.append(port)
    raise PlatformError(
        f"no {count} free ports",
        wanted=f"{count} free ports from {PICKED_FROM.start} to {PICKED_FROM.stop - 1}",
        found=str(len(found)),
        next_step="end programs that listen there",
    )


def require_free(port: int, key: str, ours: Iterable[psutil.Process] = ()) -> None:
    """Refuse a port of the stack file that something else than one of `ours` listens on.

    Raises:
        PlatformError: it names the key, the process that has the port where it can be seen, and a free port.
    """
    if is_free(port) or _listeners(port) & {process.pid for process in ours}:
        return
    near = next((other for other in range(port + 1, min(port + 200, 65536)) if is_free(other)), None)
    raise PlatformError(
        f"port {port} is taken",
        key=key,
        wanted=f"port {port} free on 127.0.0.1",
        found=_listener(port),
        next_step=f"end that process, or set `{key}` to a free port" + (f" such as {near}" if near else ""),
    )


def _listeners(port: int) -> set[int]:
    """The processes that listen there, of those that may be seen."""
    return {
        entry.pid
        for entry in psutil.net_connections("tcp")
        if entry.status == psutil.CONN_LISTEN and entry.laddr and entry.laddr.port == port and entry.pid
    }


def _listener(port: int) -> str:
    try:
        for pid in _listeners(port):
            process = psutil.Process(pid)
            return f"`{' '.join(process.cmdline())[:80] or process.name()}` (process {pid}) listens there"
    except psutil.Error:
        pass
    return "another user's process listens there"
