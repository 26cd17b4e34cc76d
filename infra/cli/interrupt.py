"""A command that is told to end, ends with all it started."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import psutil


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Within it SIGTERM is Ctrl-C, for Pulumi's engine too, which a terminal's Ctrl-C reaches by itself.

    Without, `timeout` or a CI that is cancelled would end this process alone, and the engine would go on unseen with
    the stack's lock. The engine ends after the step that it is in; told a second time, at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if child.name() == "pulumi":
                    child.send_signal(signal.SIGINT)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
