"""Lines of Ray's log files, the last ones and those that come, from several files at once."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlencode

import httpx

from infra.platforms.ray_rest import RayRest
from infra.platforms.state_seen import LogLine

QUIET_S = 2.0
"""How long a log has to be quiet, after what writes it is over, to be taken for complete. Ray looks at it each
`INTERVAL_S`."""
INTERVAL_S = 0.5

Open = Callable[[], AbstractContextManager[httpx.Response]]


class Lines:
    """Follows streams in threads of their own; `read` gives their lines as they come.

    The threads end with this process, or when `close` ends their connections.
    """

    def __init__(self) -> None:
        self._lines: queue.Queue[LogLine | None] = queue.Queue()
        self._open: list[httpx.Response] = []
        self._sources: set[str] = set()
        self._going = 0

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        for answer in self._open:
            # A connection that another thread reads ends that thread's read, with an error that means nothing.
            answer.close()

    @property
    def sources(self) -> frozenset[str]:
        """What was followed so far."""
        return frozenset(self._sources)

    @property
    def ended(self) -> bool:
        """Whether every stream has ended by itself."""
        return self._going == 0

    def follow(self, source: str, open_stream: Open) -> None:
        """Begin with one more stream."""
        self._sources.add(source)
        self._going += 1
        threading.Thread(target=self._run, args=(source, open_stream), daemon=True).start()

    def read(self, wait_s: float) -> LogLine | None:
        """The next line; None where none came within that time."""
        try:
            return self._lines.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _run(self, source: str, open_stream: Open) -> None:
        try:
            with open_stream() as answer:
                self._open.append(answer)
                if answer.is_error:
                    answer.read()
                    self._lines.put(LogLine(source=source, line=f"[no log: {answer.status_code} {answer.text[:300]}]"))
                    return
                for line in answer.iter_lines():
                    self._lines.put(LogLine(source=source, line=line))
        except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError) as error:
            self._lines.put(LogLine(source=source, line=f"[the log's connection ended: {error}]"))
        finally:
            self._going -= 1


def log_path(node_id: str, file: str, lines: int, follow: bool) -> str:
    """Path in the dashboard of the end of a log file on a node; `file` is below Ray's folder of logs."""
    query = {"node_id": node_id, "filename": file, "lines": lines, "filter_ansi_code": "true"}
    kind = "file"
    if follow:
        kind, query["interval"] = "stream", str(INTERVAL_S)
    return f"/api/v0/logs/{kind}?{urlencode(query)}"


def last_lines(ray: RayRest, source: str, node_id: str, file: str, lines: int) -> Iterator[LogLine]:
    """The end of one log file."""
    for line in ray.text(log_path(node_id, file, lines, follow=False)).splitlines():
        yield LogLine(source=source, line=line)
