"""Pulumi resources of a job's run, and of its end where a service waits for it."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.dynamic import differs, reports_plainly, say, text
from infra.platforms.errors import PlatformError
from infra.platforms.local import jobs
from infra.platforms.local.leaving import leave_undeclared


class JobRunProvider(ResourceProvider):
    """A run starts once. It is replaced only when its name (`<job>-<run>`) changes.

    Another entrypoint under the same name is shown and waits for the next run, unless this one ended without success:
    then it is submitted again, goes on from its checkpoint, and the driver refuses what may not change. In a new life
    of the cluster the same run is submitted again as it was, unless its model is already there.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        if differs(olds, news, "run_name"):
            first = bool(news.get("hands_over_slice"))
            return DiffResult(changes=True, replaces=["run_name"], delete_before_replace=first)
        if _goes_on(olds, news):
            return DiffResult(changes=True)
        if differs(olds, news, "entrypoint") or _env(olds) != _env(news):
            say(f"run {news['run_name']} keeps its settings: the change applies to the next run, when `run:` changes")
        lost = differs(olds, news, "session") and jobs.exported(olds["export_dir"]) is None
        return DiffResult(changes=lost)

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        leave_undeclared(props["stack"], props["declared"], say)
        jobs.submit(props["stack"], props["run_name"], props["entrypoint"], props["pool"], _env(props))
        return CreateResult(props["run_name"], props)

    @reports_plainly
    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        kept = news if _goes_on(olds, news) else olds
        entrypoint, env = kept["entrypoint"], _env(kept)
        leave_undeclared(news["stack"], news["declared"], say)
        jobs.submit(news["stack"], news["run_name"], entrypoint, news["pool"], env)
        return UpdateResult({**news, "entrypoint": entrypoint, **({"env": json.dumps(env)} if "env" in news else {})})

    @reports_plainly
    def delete(self, _id: str, props: dict[str, Any]) -> None:
        jobs.end(props["stack"], props["run_name"])


def _goes_on(olds: dict[str, Any], news: dict[str, Any]) -> bool:
    """Whether the run is submitted as it is now wanted: in this life of the cluster it failed, or was ended by us."""
    if differs(olds, news, "session"):
        return False
    try:
        run = jobs.find(news["stack"], news["run_name"])
    except PlatformError:
        return False
    return (
        jobs.exported(news["export_dir"]) is None if run is None else run.goes_on_with(news["entrypoint"], _env(news))
    )


def _env(props: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a run, which a state keeps as JSON."""
    env: dict[str, str] = json.loads(text(props, "env") or "{}")
    return env


class JobFinishedProvider(ResourceProvider):
    """Waits until a run's model is exported; `step` is its checkpoint's."""

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        left = not _needs_export(news) or jobs.exported(olds["export_dir"]) is not None
        changes = differs(olds, news, "run_name", "export_dir") or not left
        hands_over = bool(news.get("hands_over_slice")) and differs(olds, news, "run_name")
        return DiffResult(
            changes=changes, replaces=["run_name"] if hands_over else [], delete_before_replace=hands_over
        )

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["run_name"], _finished(props))

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_finished(news))

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        gone = _needs_export(props) and jobs.exported(props["export_dir"]) is None
        return ReadResult("", {}) if gone else ReadResult(id_, props)


def _needs_export(props: Mapping[str, Any]) -> bool:
    """Whether the run is waited for because of its model; otherwise its end is all."""
    return bool(props.get("needs_export", True))


def _finished(props: dict[str, Any]) -> dict[str, Any]:
    if props.get("suspended") and jobs.exported(props["export_dir"]) is None:
        raise PlatformError(
            f"run {props['run_name']} is suspended",
            key="tpu-ray:jobs",
            wanted=f"its model in {props['export_dir']}",
            next_step="take the job's `suspend: true` back, then `up`",
        )
    export = jobs.wait_for_export(
        props["stack"], props["run_name"], props["export_dir"], float(props["timeout_s"]), say, _needs_export(props)
    )
    return {**props, "step": str(export.get("step", ""))}


class JobRun(Resource, module="local", name="JobRun"):
    """One run of a job, submitted to the stack's Ray."""

    run_name: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        stack: str,
        run_name: str,
        entrypoint: str,
        pool: str,
        env: Mapping[str, str],
        export_dir: str,
        session: pulumi.Input[str],
        declared: str,
        hands_over_slice: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": stack,
            "run_name": run_name,
            "entrypoint": entrypoint,
            "pool": pool,
            "env": json.dumps(env, sort_keys=True),
            "export_dir": export_dir,
            "session": session,
            "declared": declared,
            "hands_over_slice": hands_over_slice,
        }
        super().__init__(JobRunProvider(), name, props, opts)


class JobFinished(Resource, module="local", name="JobFinished"):
    """The end of a run that a service, or `up` itself, waits for."""

    step: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        stack: str,
        run_name: pulumi.Input[str],
        export_dir: str,
        timeout_s: int,
        needs_export: bool,
        suspended: bool,
        hands_over_slice: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "stack": stack,
            "run_name": run_name,
            "export_dir": export_dir,
            "timeout_s": timeout_s,
            "needs_export": needs_export,
            "suspended": suspended,
            "hands_over_slice": hands_over_slice,
            "step": None,
        }
        super().__init__(JobFinishedProvider(), name, props, opts)
