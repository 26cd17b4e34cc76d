"""Ray's dashboard over HTTP, wherever it is reached: its jobs, its applications, its log files. Needs no Ray here."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import httpx

from infra.platforms.errors import PlatformError

TRIES = 3


class RayRest:
    """The dashboard of one Ray cluster. Every method raises PlatformError where it does not answer or refuses."""

    def __init__(
        self, client: httpx.Client, base: str, headers: Callable[[], Mapping[str, str]], next_step: str
    ) -> None:
        """`base` stands before every path; `headers` are asked for each time; `next_step` is told with failures."""
        self._client, self._base, self._headers, self._next_step = client, base, headers, next_step

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return self._checked(self._patient(path)).json()

    def found(self, path: str) -> Any | None:
        """Like `get`, but None where Ray knows no such thing (404)."""
        answer = self._patient(path)
        return None if answer.status_code == httpx.codes.NOT_FOUND else self._checked(answer).json()

    def has(self, path: str) -> bool:
        """Whether there is something at a path."""
        answer = self._patient(path)
        return answer.status_code != httpx.codes.NOT_FOUND and bool(self._checked(answer))

    def text(self, path: str) -> str:
        """The text at a path."""
        return self._checked(self._patient(path)).text

    def post(self, path: str, body: object = None) -> Any:
        """What a POST answers."""
        return self._checked(self._ask("POST", path, 120, json=body)).json()

    def put_bytes(self, path: str, content: bytes) -> None:
        """Write something at a path."""
        self._checked(self._ask("PUT", path, 600, content=content))

    def stream(self, path: str) -> AbstractContextManager[httpx.Response]:
        """An answer that goes on; nothing of it may come for a long time."""
        timeout = httpx.Timeout(30, read=None)
        return self._client.stream("GET", self._base + path, headers=dict(self._headers()), timeout=timeout)

    def _patient(self, path: str) -> httpx.Response:
        """GET, again where nothing came back: a busy dashboard may be late while all is well."""
        for _ in range(TRIES - 1):
            try:
                return self._ask("GET", path, 20)
            except PlatformError:
                time.sleep(1)
        return self._ask("GET", path, 20)

    def _ask(self, method: str, path: str, timeout_s: float, **body: Any) -> httpx.Response:
        try:
            headers = dict(self._headers())
            return self._client.request(method, self._base + path, headers=headers, timeout=timeout_s, **body)
        except httpx.HTTPError as error:
            raise PlatformError(
                "Ray's dashboard does not answer",
                wanted=f"{method} {path}",
                found=f"{type(error).__name__}: {error}",
                next_step=self._next_step,
            ) from error

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_error:
            lines = [line.strip() for line in answer.text.splitlines() if line.strip()]
            raise PlatformError(
                f"Ray refused {answer.request.method} {answer.request.url.path}",
                found=f"{answer.status_code}: {(lines[-1] if lines else 'no text')[:600]}",
                next_step=self._next_step,
            )
        return answer
