"""A small double of the Hugging Face hub's HTTP API: one repository, and what was asked of it.

https://huggingface.co/docs/hub/api; the headers are those that huggingface_hub reads (file_download.py).
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Hub:
    """What it holds, how it behaves, and what was asked."""

    repo: str
    files: dict[str, bytes]
    token: str = ""
    """Where it is given, nobody else sees the repository."""
    gated: bool = False
    breaks: dict[str, int] = field(default_factory=dict)
    """After how many bytes of a file the connection ends, once."""
    url: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, and range."""

    def downloads(self, name: str) -> list[str]:
        """The ranges in which the content of a file was asked for."""
        return [part for method, path, part in self.asked if method == "GET" and path.endswith(f"/{name}")]


@contextmanager
def hub(repo: str, files: dict[str, bytes], **behaviour: Any) -> Iterator[Hub]:
    """Serve on a free port until the block ends."""
    one = Hub(repo, files, **behaviour)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            one.asked.append((self.command, path, self.headers.get("Range", "")))
            mine = path.startswith((f"/api/models/{one.repo}", f"/{one.repo}/resolve/"))
            if not mine or (one.token and self.headers.get("Authorization") != f"Bearer {one.token}"):
                return self._send(401, {"X-Error-Code": "RepoNotFound"}, b"", with_body)
            if path.startswith("/api/"):
                return self._api(path.removeprefix(f"/api/models/{one.repo}"), with_body)
            return self._file(path.removeprefix(f"/{one.repo}/resolve/"), with_body)

        def _api(self, rest: str, with_body: bool) -> None:
            revision = rest.removeprefix("/revision/") or "main"
            if rest.startswith("/tree/"):
                listing = [
                    {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for name, content in one.files.items()
                ]
                return self._send(200, {"Content-Type": "application/json"}, json.dumps(listing).encode(), with_body)
            if revision not in ("main", COMMIT):
                return self._send(404, {"X-Error-Code": "RevisionNotFound"}, b"", with_body)
            info = {"id": one.repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in one.files]}
            return self._send(200, {"Content-Type": "application/json"}, json.dumps(info).encode(), with_body)

        def _file(self, rest: str, with_body: bool) -> None:
            _, _, name = rest.partition("/")
            if one.gated:
                return self._send(403, {"X-Error-Code": "GatedRepo"}, b"", with_body)
            content = one.files[name]
            headers = {
                "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                "X-Repo-Commit": COMMIT,
                "Accept-Ranges": "bytes",
            }
            first = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
            if first:
                headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            stop = one.breaks.pop(name, None) if with_body else None
            return self._send(206 if first else 200, headers, content[first:], with_body, stop)

        def _send(
            self, code: int, headers: dict[str, str], body: bytes, with_body: bool, stop: int | None = None
        ) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body[:stop])
            if stop is not None:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
