"""Pulumi resource that is there only while a service on GKE answers."""

from pathlib import Path
from typing import Any

import httpx
import pulumi
from kubernetes.config import ConfigException
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.plan.health import health_in, health_props
from infra.platforms.dynamic import differs, reports_plainly, say, text
from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.look import Wanted
from infra.platforms.gke.waiting import Expected, is_ready, wait_until_ready


class ReadyProvider(ResourceProvider):
    """Waits until the service answers. Where that fails, the next `up` waits, and fails, again.

    Also `diff` asks the service, so that an `up` over a service that died is not green.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = differs(olds, news, "mark", "uid", "manifest", "health")
        return DiffResult(changes=changed or text(olds, "url") is None or not _answers(news))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(f"{props['namespace']}/{props['service']}", _ready(props))

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_ready(news))

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props) if text(props, "url") and _answers(props) else ReadResult("", {})


def _ready(props: dict[str, Any]) -> dict[str, Any]:
    kubernetes = log_in(props)
    try:
        return {**props, "url": wait_until_ready(kubernetes, _expected(props), say)}
    finally:
        kubernetes.close()


def _answers(props: dict[str, Any]) -> bool:
    if text(props, "login") is None:
        return False
    kubernetes = log_in(props)
    try:
        return is_ready(kubernetes, _expected(props))
    except httpx.HTTPError:
        return False
    finally:
        kubernetes.close()


def _expected(props: dict[str, Any]) -> Expected:
    return Expected(
        Wanted(props["service"], props["namespace"], int(props["hosts"]), props.get("config_mark", "")),
        props["mark"],
        props["slices"],
        float(props["timeout_s"]),
        health_in(props),
    )


def log_in(props: dict[str, Any]) -> Kubernetes:
    """`login` is a kubeconfig, or the path of the user's own: that one's secrets have no place in a state."""
    login = props["login"]
    try:
        kubeconfig = login if login.startswith("{") else Path(login).expanduser().read_text()
        return Kubernetes(kubeconfig, props.get("context"))
    except (OSError, ConfigException) as error:
        raise PlatformError(
            "there is no login to the cluster",
            key="tpu-ray:platform.cluster",
            found=str(error),
            next_step="log in (`gcloud auth login`), or name a kubeconfig that can be read; then `up` again",
        ) from None


class Ready(Resource, module="gke", name="Ready"):
    """A service that answers."""

    url: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        login: pulumi.Input[str],
        context: str | None,
        expected: Expected,
        mark: pulumi.Input[str],
        config_mark: pulumi.Input[str],
        uid: pulumi.Input[str | None],
        manifest: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`manifest` names the RayService's spec, `uid` the very object: with either, the wait begins anew. The two
        marks are the expected ones; of a job's model they are known only after the job."""
        props = {
            "login": login,
            "context": context,
            "service": expected.wanted.name,
            "namespace": expected.wanted.namespace,
            "hosts": expected.wanted.hosts,
            "mark": mark,
            "config_mark": config_mark,
            **health_props(expected.health),
            "slices": expected.slices,
            "timeout_s": expected.timeout_s,
            "uid": uid,
            "manifest": manifest,
            "url": None,
        }
        super().__init__(ReadyProvider(), name, props, opts)
