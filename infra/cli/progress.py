"""Progress on standard error: rich on a terminal, plain lines elsewhere. Standard output is for results."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.automation.watch import Watch

HEARTBEAT_S = 15.0
"""How often a plain log repeats what is still going on."""


def say(line: str) -> None:
    """One progress line."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Writes lines, and keeps showing what is still running."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.fancy = self._console.is_terminal

    def say(self, line: str) -> None:
        """One line, above the moving part on a terminal."""
        if self.fancy:
            self._console.print(line, markup=False)
        else:
            say(line)

    @contextmanager
    def showing(self, watch: "Watch") -> Iterator[None]:
        """Show `watch.running` while the block runs."""
        stop = threading.Event()
        show = self._live if self.fancy else self._heartbeat
        thread = threading.Thread(target=show, args=(watch, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _heartbeat(self, watch: "Watch", stop: threading.Event) -> None:
        while not stop.wait(HEARTBEAT_S):
            for line in still_running(watch):
                say(f"  ... {line}")

    def _live(self, watch: "Watch", stop: threading.Event) -> None:
        with self._console.status("starting the engine") as status:
            while not stop.wait(0.5):
                lines = still_running(watch)
                status.update("   ".join(lines) if lines else "working")


def still_running(watch: "Watch") -> list[str]:
    """`creating Ready chat, 31 s` for each resource that is being worked on."""
    now = time.monotonic()
    return [f"{doing}, {now - since:.0f} s" for doing, since in list(watch.running.values())]
