"""What the dynamic resources share: reading properties, telling progress, and errors without a traceback."""

import contextlib
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import psutil
from pulumi.runtime import rpc

from infra.platforms.errors import PlatformError

P = ParamSpec("P")
R = TypeVar("R")


def text(props: Mapping[str, Any], key: str) -> str | None:
    """A property that is known text; None where it is missing or not known before `up`."""
    value = props.get(key)
    return value if isinstance(value, str) and value != rpc.UNKNOWN else None


def differs(olds: Mapping[str, Any], news: Mapping[str, Any], *keys: str) -> bool:
    """Whether any of these texts is new, or not known before `up`."""
    return any(text(news, key) is None or text(olds, key) != text(news, key) for key in keys)


def say(line: str) -> None:
    """A line of progress. The engine shows what a provider writes to its error stream."""
    print(line, file=sys.stderr, flush=True)


def reports_plainly(method: Callable[P, R]) -> Callable[P, R]:
    """Let a PlatformError of a provider's method reach the user as its own text.

    Pulumi's dynamic provider process answers with `traceback.format_exc()` of its main module. Only there, and only for
    a PlatformError, the text is shortened to the error's own.
    """

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        main = sys.modules.get("__main__")
        if getattr(getattr(main, "__spec__", None), "name", "") == "pulumi.dynamic.__main__":
            main.traceback = SimpleNamespace(format_exc=_format)  # type: ignore[union-attr]
            _end_with_the_engine()
        return method(*args, **kwargs)

    return wrapped


@functools.cache
def _end_with_the_engine() -> None:
    """End this process when the engine that started it is gone: Pulumi leaves the provider of a killed run waiting."""
    engine = next((process for process in psutil.Process().parents() if process.name() == "pulumi"), None)
    if engine is not None:
        threading.Thread(target=_watch, args=(engine,), daemon=True).start()


def _watch(engine: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE:
            time.sleep(2)
    os._exit(1)


def _format() -> str:
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, PlatformError) else traceback.format_exc()
