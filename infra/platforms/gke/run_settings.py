"""Pulumi resource that remembers what a run on GKE was started with, and says so where the file has something else."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.plan.job_changes import differing
from infra.platforms.dynamic import differs, reports_plainly, say, text


class RunSettingsProvider(ResourceProvider):
    """Changes with the run alone. A preview says which keys wait for the next one; the RayJob itself shows no change,
    because KubeRay would take one and do nothing with it.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        if differs(olds, news, "run", "uid"):
            return DiffResult(changes=True)
        keys = differing(json.loads(text(olds, "settings") or "{}"), json.loads(text(news, "settings") or "{}"))
        if keys:
            told = f"run {news['run']} keeps its settings: the change of {', '.join(keys)} applies to the next run"
            say(f"{told}, when `run:` changes")
        return DiffResult(changes=False)

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["run"], props)

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(news)

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)


class RunSettings(Resource, module="gke", name="RunSettings"):
    """What a run was started with."""

    def __init__(
        self,
        name: str,
        *,
        run: str,
        uid: pulumi.Input[str | None],
        settings: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`settings` are those of the file (`infra.plan.job_changes.settings`); `uid` names the very RayJob."""
        props = {"run": run, "uid": uid, "settings": json.dumps(settings, sort_keys=True)}
        super().__init__(RunSettingsProvider(), name, props, opts)
