"""Pulumi resource of one service's application."""

import json
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.local.applications import (
    applications,
    delete_application,
    put_application,
    wanted_applications,
)
from infra.platforms.local.dynamic import differs, reports_plainly, text
from infra.platforms.local.errors import LocalError


class ServeAppProvider(ResourceProvider):
    """One entry of Serve's list. `session` is the cluster's: a new life of it needs the application again."""

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changes = differs(olds, news, "application", "session") or not _is_wanted(olds)
        # A job that needs the only slice of its pool can run again only after the service has left it.
        replaces = ["application"] if news.get("hands_over_slice") and differs(olds, news, "application") else []
        return DiffResult(changes=changes, replaces=replaces, delete_before_replace=bool(replaces))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        put_application(props["stack"], json.loads(props["application"]))
        return CreateResult(f"{props['stack']}/{props['name']}", props)

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        put_application(news["stack"], json.loads(news["application"]))
        return UpdateResult(news)

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props) if _is_wanted(props) else ReadResult("", {})

    @reports_plainly
    def delete(self, _id: str, props: dict[str, Any]) -> None:
        delete_application(props["stack"], props["name"])


def _is_wanted(props: dict[str, Any]) -> bool:
    """Whether Serve was last asked for exactly this application, and still has one of its name."""
    application, stack, name = text(props, "application"), props["stack"], props["name"]
    if application is None or wanted_applications(stack).get(name) != json.loads(application):
        return False
    try:
        return name in applications(stack)
    except LocalError:
        return False


class ServeApp(Resource, module="local", name="ServeApp"):
    """One application of the stack's Serve."""

    def __init__(
        self,
        name: str,
        *,
        stack: str,
        application: pulumi.Input[str],
        session: pulumi.Input[str],
        hands_over_slice: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": stack,
            "name": name,
            "application": application,
            "session": session,
            "hands_over_slice": hands_over_slice,
        }
        super().__init__(ServeAppProvider(), name, props, opts)
