"""What a stack declares to the Pulumi engine, recorded without an engine: inputs and options of every resource."""

import warnings
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.runtime import rpc
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks, set_mocks

from infra.platforms.gke import deploy
from infra.program import PROJECT
from infra.stack import StackSpec, parse_stack

NODE_POOL, CLUSTER = "gcp:container/nodePool:NodePool", "gcp:container/cluster:Cluster"


@dataclass(frozen=True)
class Declared:
    """One resource of Google's or Kubernetes' provider. Secret inputs are `[secret]`."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    protect: bool
    delete_before_replace: bool
    retain_on_delete: bool
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    depends_on: frozenset[str] = frozenset()
    """`<type> <name>` of everything that comes before it and goes after it."""


class _Nothing(Mocks):
    """Resources that come with what they were asked with, and a cluster that can be logged in to."""

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        named = args.inputs.get("name") or args.name
        place = f"projects/{args.inputs.get('project')}/locations/{args.inputs.get('location')}"
        filled = {
            "endpoint": "192.0.2.1",
            "masterAuth": {"clusterCaCertificate": "Y2E="},
            "selfLink": named,
            "email": f"{args.name}@example.iam.gserviceaccount.com",
            "etag": "1",
        }
        outputs = {**filled, **args.inputs}
        if "metadata" in outputs:
            outputs["metadata"] = {**outputs["metadata"], "uid": f"uid-of-{args.name}"}
        return f"{place}/clusters/{named}" if args.typ == CLUSTER else named, outputs

    def call(self, args: MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        cluster = {
            "endpoint": "192.0.2.1",
            "masterAuths": [{"clusterCaCertificate": "Y2E="}],
            "addonsConfigs": [{"rayOperatorConfigs": [{"enabled": True}]}],
            "workloadIdentityConfigs": [{"workloadPool": f"{args.args.get('project')}.svc.id.goog"}],
        }
        return {**args.args, **cluster, "number": "123456789012"}, []


class _Recorder(MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Nothing())
        self.declared: list[Declared] = []
        self._before: dict[str, set[str]] = {}

    def RegisterResource(self, request: Any) -> Any:
        made = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        # What is inside a component comes after what the component comes after.
        self._before[made.urn] = {*request.dependencies, *([request.parent] if request.parent else [])}
        if request.custom:
            inputs = rpc.deserialize_properties(request.object, keep_unknowns=True)
            self.declared.append(
                Declared(
                    request.type,
                    request.name,
                    _open(inputs),
                    request.protect,
                    request.deleteBeforeReplace,
                    request.retainOnDelete,
                    tuple(request.ignoreChanges),
                    tuple(request.replaceOnChanges),
                    frozenset(map(_named, self._all_before(made.urn))),
                )
            )
        return made

    def _all_before(self, urn: str) -> set[str]:
        found, left = set[str](), [urn]
        while left:
            left += (new := self._before.get(left.pop(), set()) - found)
            found |= new
        return found


def _named(urn: str) -> str:
    *_, kind, name = urn.split("::")
    return f"{kind.rpartition('$')[2]} {name}"


def declared(
    config: Mapping[str, object],
    secrets: Mapping[str, str] | None = None,
    name: str = "dev",
    program: Callable[[str, StackSpec], None] = deploy,
) -> list[Declared]:
    """Every resource of a GKE stack with this `config` mapping.

    Args:
        config: keys in full (`tpu-ray:pools`).
        secrets: keys that are stored encrypted, with their text.
        name: the stack's.
        program: what declares them, by the stack's name and what its file says.

    Raises:
        StackError: the stack file is wrong.
    """
    with warnings.catch_warnings():
        # The SDK warns about its own old names when it is loaded.
        warnings.filterwarnings("ignore", r"gcp\.", DeprecationWarning)
        return copy_context().run(_declared, name, parse_stack(config), dict(secrets or {}), program)


def _declared(
    name: str, stack: StackSpec, secrets: dict[str, str], program: Callable[[str, StackSpec], None]
) -> list[Declared]:
    recorder = _Recorder()
    set_mocks(_Nothing(), project=PROJECT, stack=name, preview=False, monitor=recorder)
    pulumi.runtime.set_all_config(secrets, list(secrets))
    pulumi.runtime.test(lambda: program(name, stack))()  # type: ignore[no-untyped-call]
    return recorder.declared


def _open(value: Any) -> Any:
    if rpc.is_rpc_secret(value):
        return "[secret]"
    if isinstance(value, dict):
        return {key: _open(inner) for key, inner in value.items()}
    return [_open(inner) for inner in value] if isinstance(value, list) else value
