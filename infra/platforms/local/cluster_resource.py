"""Pulumi resource of a stack's emulated cluster."""

from typing import Any

import pulumi
from pulumi.dynamic import CheckResult, CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.dynamic import differs, reports_plainly, say
from infra.platforms.local import cluster
from infra.platforms.local.folders import Folders
from infra.platforms.local.leaving import leave_pools
from infra.platforms.local.room import require_room
from infra.platforms.local.spec import ClusterSpec
from infra.platforms.local.state import ClusterState


class LocalClusterProvider(ResourceProvider):
    """The cluster is always changed in place, so that the jobs' files survive; only `delete` removes them.

    `session` names one life of the cluster. It is decided in `check`, before anything is done: kept while every process
    lives and the head stays, new otherwise. So a preview of a healthy stack shows nothing, and of a dead one everything
    that will be made anew.
    """

    serialize_as_secret_always = False

    @reports_plainly
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        spec = ClusterSpec.from_json(news["spec"])
        now = cluster.status(spec.stack)
        keeps = now.state is not None and now.alive and now.state.spec.same_head(spec)
        session = now.state.session if keeps and now.state else cluster.new_session()
        return CheckResult({**news, "session": session}, [])

    @reports_plainly
    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        spec = ClusterSpec.from_json(news["spec"])
        now = cluster.status(spec.stack)
        # After an `up` that failed half way the cluster is not what Pulumi last wrote down.
        another = now.state is not None and now.state.spec != spec
        return DiffResult(changes=another or differs(olds, news, "spec", "session"))

    @reports_plainly
    def create(self, props: dict[str, Any]) -> CreateResult:
        state = cluster.start(ClusterSpec.from_json(props["spec"]), say, props["session"])
        return CreateResult(state.spec.stack, _outputs(state))

    @reports_plainly
    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        spec = ClusterSpec.from_json(news["spec"])
        # What is refused must not have ended a service.
        require_room(spec, cluster.status(spec.stack).state)
        # The engine deletes services only after this update, when the hosts of a pool that goes would be gone.
        leave_pools(spec, say)
        return UpdateResult(_outputs(cluster.start(spec, say, news["session"])))

    @reports_plainly
    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """A dead cluster stays in Pulumi's state, marked by another session: `destroy` must still clear up after it."""
        now = cluster.status(id_)
        if now.state is None:
            say(f"the cluster of stack {id_} is gone; `up` makes it anew")
            return ReadResult("", {})
        if now.dead:
            say(f"the cluster of stack {id_} is dead ({', '.join(now.dead)} ended); `up` makes it anew")
            return ReadResult(id_, {**props, "session": "dead"})
        return ReadResult(id_, _outputs(now.state))

    @reports_plainly
    def delete(self, id_: str, _props: dict[str, Any]) -> None:
        cluster.stop(id_, say)


def _outputs(state: ClusterState) -> dict[str, Any]:
    return {
        "spec": state.spec.to_json(),
        "session": state.session,
        "dashboard": state.dashboard,
        "storage": str(Folders.of(state.spec.stack).storage),
    }


class LocalCluster(Resource, module="local", name="LocalCluster"):
    """The Ray head and one Ray node per host of every slice, on this machine."""

    session: pulumi.Output[str]

    def __init__(self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(LocalClusterProvider(), name, {"spec": spec.to_json(), "session": None}, opts)
