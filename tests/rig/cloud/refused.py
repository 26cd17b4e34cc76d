"""The double's answers that are errors, worded as the `gcp` provider words them."""

from tests.rig.gcp.values import Object


class Refused(Exception):
    """Google refuses the call; nothing was made or changed."""


class RefusedPartially(Refused):
    """Google began, and failed: the object exists in an error state and is to be kept in the program's state.

    Attributes:
        id: the object's.
        outputs: its properties as Google shows them.
    """

    def __init__(self, message: str, id: str, outputs: Object) -> None:
        super().__init__(message)
        self.id = id
        self.outputs = outputs


class OperationFailed(Exception):
    """The call was accepted, and the operation that it began fails: the object is left in an error state."""


def bad_request(message: str, reason: str = "badRequest") -> Refused:
    """HTTP 400."""
    return Refused(f"googleapi: Error 400: {message}, {reason}")


def forbidden(message: str, reason: str = "forbidden") -> Refused:
    """HTTP 403."""
    return Refused(f"googleapi: Error 403: {message}, {reason}")


def not_found(message: str) -> Refused:
    """HTTP 404."""
    return Refused(f"googleapi: Error 404: {message}, notFound")


def conflict(message: str, reason: str = "alreadyExists") -> Refused:
    """HTTP 409."""
    return Refused(f"googleapi: Error 409: {message}, {reason}")


def in_use(kind: str, id: str, user: str) -> Refused:
    """Compute Engine's answer where something that is still needed is to be deleted.

    https://github.com/genevieve/leftovers/issues/6
    """
    return bad_request(
        f"The {kind} resource '{id}' is already being used by '{user}'", "resourceInUseByAnotherResource"
    )
