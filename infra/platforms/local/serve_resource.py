"""Pulumi resource of one service's application."""

import json
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.dynamic import differs, reports_plainly, say, text
from infra.platforms.errors import PlatformError
from infra.platforms.local.applications import (
    FAILED,
    applications,
    delete_application,
    put_application,
    wanted_applications,
)
from infra.platforms.local.leaving import leave_undeclared


class ServeAppProvider(ResourceProvider):
    """One entry of Serve's list. `session` is the cluster's: a new life of it needs the application again.

    `declared` is what else the stack file has, and no part of the application: where only it changed, nothing is done.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changes = differs(olds, news, "application", "session") or _condition(olds) in (None, *FAILED)
        # A job that needs the only slice of its pool can run again only after the service has left it.
        replaces = ["application"] if news.get("hands_over_slice") and differs(olds, news, "application") else []
        return DiffResult(changes=changes, replaces=replaces, delete_before_replace=bool(replaces))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        _put(props)
        return CreateResult(f"{props['stack']}/{props['name']}", props)

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        _put(news)
        return UpdateResult(news)

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        # One that failed stays in Pulumi's state: what is declared no more must still be deleted.
        return ReadResult("", {}) if _condition(props) is None else ReadResult(id_, props)

    @reports_plainly
    def delete(self, _id: str, props: dict[str, Any]) -> None:
        delete_application(props["stack"], props["name"])


def _put(props: dict[str, Any]) -> None:
    leave_undeclared(props["stack"], props["declared"], say)
    put_application(props["stack"], json.loads(props["application"]))


def _condition(props: dict[str, Any]) -> str | None:
    """Serve's status of the application, None where it has none or was last asked for another of its name."""
    application, stack, name = text(props, "application"), props["stack"], props["name"]
    if application is None or wanted_applications(stack).get(name) != json.loads(application):
        return None
    try:
        now = applications(stack).get(name)
    except PlatformError:
        return None
    return None if now is None else str(now.get("status"))


class ServeApp(Resource, module="local", name="ServeApp"):
    """One application of the stack's Serve."""

    def __init__(
        self,
        name: str,
        *,
        stack: str,
        application: pulumi.Input[str],
        session: pulumi.Input[str],
        declared: str,
        hands_over_slice: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": stack,
            "name": name,
            "application": application,
            "session": session,
            "declared": declared,
            "hands_over_slice": hands_over_slice,
        }
        super().__init__(ServeAppProvider(), name, props, opts)
