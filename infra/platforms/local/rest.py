"""Ray's dashboard over HTTP, with the stack's token. Needs no Ray in this environment."""

import time
from typing import Any

import httpx

from infra.platforms.errors import PlatformError
from infra.platforms.local.folders import Folders


class Dashboard:
    """The REST interface of one running cluster: Serve's applications, jobs, nodes."""

    def __init__(self, url: str, folders: Folders) -> None:
        self.url, self._folders = url, folders

    def get(self, path: str, timeout_s: float = 20) -> Any:
        return self._checked(self._patient(path, timeout_s), path).json()

    def put(self, path: str, body: object, timeout_s: float = 120) -> None:
        self._send("PUT", path, body, timeout_s)

    def post(self, path: str, body: object = None, timeout_s: float = 120) -> Any:
        return self._send("POST", path, body, timeout_s).json()

    def delete(self, path: str, timeout_s: float = 120) -> None:
        """Nothing happens where Ray knows no such thing (404)."""
        answer = self._request("DELETE", path, None, timeout_s)
        if answer.status_code != 404:
            self._checked(answer, path)

    def found(self, path: str) -> Any | None:
        """Like `get`, but None where Ray knows no such thing (404)."""
        answer = self._patient(path, 20)
        return None if answer.status_code == 404 else self._checked(answer, path).json()

    def answers(self) -> bool:
        """Whether the dashboard answers and accepts the token."""
        try:
            return self._request("GET", "/api/version", None, 5).status_code == 200
        except PlatformError:
            return False

    def _patient(self, path: str, timeout_s: float, tries: int = 3) -> httpx.Response:
        """GET, again where nothing came back: on a busy machine the dashboard may be late while all is well."""
        for _ in range(tries - 1):
            try:
                return self._request("GET", path, None, timeout_s)
            except PlatformError:
                time.sleep(1)
        return self._request("GET", path, None, timeout_s)

    def _send(self, method: str, path: str, body: object, timeout_s: float) -> httpx.Response:
        return self._checked(self._request(method, path, body, timeout_s), path)

    def _checked(self, answer: httpx.Response, path: str) -> httpx.Response:
        if answer.is_error:
            raise PlatformError(
                f"Ray refused {answer.request.method} {path}",
                wanted="an answer of 2xx",
                found=f"{answer.status_code}: {_last_line(answer.text)}",
                next_step=f"the cluster's logs are in {self._folders.logs}",
            )
        return answer

    def _request(self, method: str, path: str, body: object, timeout_s: float) -> httpx.Response:
        try:
            headers = {"Authorization": f"Bearer {self._folders.token_file.read_text().strip()}"}
            # trust_env: a proxy of the environment must not see this, nor can it reach this machine's loopback.
            with httpx.Client(trust_env=False, timeout=timeout_s, headers=headers) as client:
                return client.request(method, self.url + path, json=body)
        except (httpx.HTTPError, OSError) as error:
            raise PlatformError(
                "Ray's dashboard does not answer",
                wanted=f"{self.url}{path}",
                found=f"{type(error).__name__}: {error}",
                next_step=f"`tpu-ray local status -s {self._folders.stack}` says which processes live; "
                "`up` starts them again",
            ) from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "no text")[:600]
