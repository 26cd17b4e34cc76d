"""Pulumi resource that is there once a run on GKE has succeeded."""

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.dynamic import differs, reports_plainly, say, text
from infra.platforms.gke.ready_resource import log_in
from infra.platforms.gke.run_look import WantedRun
from infra.platforms.gke.run_waiting import ExpectedRun, wait_for_run


class JobFinishedProvider(ResourceProvider):
    """Waits until the run has succeeded. Where that fails, the next `up` waits, and fails, again.

    What has succeeded once is not asked again: the run's files stay, whatever becomes of its RayJob.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = differs(olds, news, "namespace", "run", "uid", "export")
        return DiffResult(changes=changed or text(olds, "exported") is None)

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(f"{props['namespace']}/{props['run']}", _finished(props))

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_finished(news))

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)


def _finished(props: dict[str, Any]) -> dict[str, Any]:
    kubernetes = log_in(props)
    try:
        wait_for_run(kubernetes, _expected(props), say)
    finally:
        kubernetes.close()
    return {**props, "exported": props["export"]}


def _expected(props: dict[str, Any]) -> ExpectedRun:
    return ExpectedRun(
        WantedRun(props["run"], props["namespace"], int(props["hosts"])), props["slices"], float(props["timeout_s"])
    )


class JobFinished(Resource, module="gke", name="JobFinished"):
    """A run that has succeeded."""

    exported: pulumi.Output[str]
    """`export` as it was given, known once the run has succeeded."""

    def __init__(
        self,
        name: str,
        *,
        login: pulumi.Input[str],
        context: str | None,
        expected: ExpectedRun,
        uid: pulumi.Input[str | None],
        export: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`uid` names the very RayJob: with another one the wait begins anew. `export` is where the run leaves its
        model."""
        props = {
            "login": login,
            "context": context,
            "run": expected.wanted.name,
            "namespace": expected.wanted.namespace,
            "hosts": expected.wanted.hosts,
            "slices": expected.slices,
            "timeout_s": expected.timeout_s,
            "uid": uid,
            "export": export,
            "exported": None,
        }
        super().__init__(JobFinishedProvider(), name, props, opts)
