"""Pulumi resource that is there only while a service answers."""

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.plan.health import health_in, health_props
from infra.platforms.dynamic import differs, reports_plainly, say, text
from infra.platforms.local.readiness import Expected, answers, wait_until_ready


class ReadyProvider(ResourceProvider):
    """Waits until the service answers. Where that fails, the next `up` waits, and fails, again.

    Also `diff` asks the service, so that an `up` over a service that died is not green.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = differs(olds, news, "application", "session", "health")
        return DiffResult(changes=changed or not _answers({**news, "url": olds.get("url")}))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(f"{props['stack']}/{props['service']}", _ready(props))

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_ready(news))

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props) if _answers(props) else ReadResult("", {})


def _answers(props: dict[str, Any]) -> bool:
    """Whether the service answers, on a busy machine at the second try."""
    url, health = text(props, "url"), health_in(props)
    return url is not None and (answers(url, health=health) or answers(url, 15, health))


def _ready(props: dict[str, Any]) -> dict[str, Any]:
    expected = Expected(
        props["service"],
        props["slices"],
        props["ray_head_resource"],
        timeout_s=float(props["timeout_s"]),
        health=health_in(props),
    )
    return {**props, "url": wait_until_ready(props["stack"], expected, say)}


class Ready(Resource, module="local", name="Ready"):
    """A service that answers."""

    url: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        stack: str,
        expected: Expected,
        application: pulumi.Input[str],
        session: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": stack,
            "service": expected.name,
            "slices": expected.slices,
            "ray_head_resource": expected.ray_head_resource,
            "timeout_s": expected.timeout_s,
            **health_props(expected.health),
            "application": application,
            "session": session,
            "url": None,
        }
        super().__init__(ReadyProvider(), name, props, opts)
