"""What a client is told when its request is not served: OpenAI's error envelope and the statuses that go with it."""

from dataclasses import dataclass
from typing import NoReturn


@dataclass
class ApiError(Exception):
    """One refused or failed request. `param` is the JSON field at fault, as the client wrote it."""

    status: int
    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        return self.message

    def envelope(self) -> dict[str, object]:
        """`{"error": {message, type, param, code}}`."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def refuse(param: str | None, message: str, code: str | None = None) -> NoReturn:
    """Raise the 400 of a bad value."""
    raise ApiError(400, message, param=param, code=code)


class QueueFull(ApiError):
    """As many requests wait as this replica lets in. The client should come back later."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            429, f"{limit} requests are already here; try again later", "rate_limit_error", code="queue_full"
        )


class EngineDead(ApiError):
    """The engine of this replica has stopped; the replica is being replaced."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(503, f"the engine has stopped: {reason}", "server_error", code="engine_dead")
