"""The provider's gRPC service, and its process: it prints its port and serves until the engine ends it."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, Protocol, TypeAlias, cast

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.proto.status_pb2 import Status

from tests.rig.gcp import VERSION
from tests.rig.gcp.catalogue import ResourceType, load_catalogue
from tests.rig.gcp.check import check_inputs
from tests.rig.gcp.diff import describe, plan_create, plan_update
from tests.rig.gcp.invokes import answer_invoke
from tests.rig.gcp.naming import Proposal
from tests.rig.gcp.package_schema import package_schema
from tests.rig.gcp.rules import PlanError
from tests.rig.gcp.send import (
    ApplyError,
    changes_sent,
    creation,
    inputs_after_read,
    read_back,
    refuse_delete,
    sealed,
)
from tests.rig.gcp.settings import Settings, read_settings
from tests.rig.gcp.values import Object, read_struct, write_struct

KINDS: Final[dict[str, provider_pb2.PropertyDiff.Kind.ValueType]] = {
    "add": provider_pb2.PropertyDiff.ADD,
    "add-replace": provider_pb2.PropertyDiff.ADD_REPLACE,
    "delete": provider_pb2.PropertyDiff.DELETE,
    "delete-replace": provider_pb2.PropertyDiff.DELETE_REPLACE,
    "update": provider_pb2.PropertyDiff.UPDATE,
    "update-replace": provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
MODES: Final[tuple[Literal["propose", "enforce", "disable"], ...]] = ("propose", "enforce", "disable")
Context: TypeAlias = grpc.ServicerContext
LARGEST_MESSAGE = 400 * 1024 * 1024


class CloudSide(Protocol):
    """Google's side, as `tests.rig.cloud` plays it."""

    def create(self, token: str, inputs: Object) -> tuple[str, Object]: ...
    def read(self, token: str, id: str) -> Object | None: ...
    def update(self, token: str, id: str, changed: Object) -> Object: ...
    def delete(self, token: str, id: str, state: Object) -> None: ...
    def invoke(self, token: str, args: Object) -> Object: ...


class HalfMade(Protocol):
    """What a creation that failed half-way says: the message, and what is there."""

    id: str
    outputs: Object


@dataclass(frozen=True)
class Refusals:
    """How Google's side refuses: `partly` is a kind of `refused` that also has an `id` and `outputs`."""

    refused: type[Exception]
    partly: type[Exception]


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """The `gcp` provider."""

    def __init__(self, cloud: CloudSide, refusals: Refusals) -> None:
        self.cloud = cloud
        self.refusals = refusals
        self.settings = Settings()
        self.catalogue = load_catalogue()
        self.cancelled = threading.Event()

    # The engine's side of life.

    def GetPluginInfo(self, request: Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> Empty:
        return Empty()

    def Cancel(self, request: Empty, context: Context) -> Empty:
        self.cancelled.set()
        return Empty()

    def GetSchema(self, request: provider_pb2.GetSchemaRequest, context: Context) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema=package_schema())

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        old, new = read_struct(request.olds), read_struct(request.news)
        diffs = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some if diffs else none, diffs=diffs)

    def Configure(self, request: provider_pb2.ConfigureRequest, context: Context) -> provider_pb2.ConfigureResponse:
        self.settings = read_settings(read_struct(request.args))
        return provider_pb2.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    # Resources.

    def Check(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        kind = self._kind(request.urn, context)
        proposal = None
        if request.HasField("autonaming"):
            proposal = Proposal(request.autonaming.proposed_name, MODES[request.autonaming.mode])
        checked = check_inputs(
            kind,
            _logical(request.urn),
            read_struct(request.news),
            read_struct(request.olds),
            request.randomSeed,
            proposal,
        )
        response = provider_pb2.CheckResponse(inputs=write_struct(checked.inputs))
        for reason in checked.failures:
            response.failures.add(reason=reason)
        return response

    def Diff(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        kind = self._kind(request.urn, context)
        inputs = read_struct(request.news)
        with self._refusing(context, f"diffing {request.urn}"):
            plan = plan_update(kind, inputs, read_struct(request.olds), self.settings, list(request.ignoreChanges))
        answer = describe(plan, inputs)
        response = provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if answer.changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=answer.properties,
            replaces=answer.replaces,
            stables=answer.stables,
            deleteBeforeReplace=answer.delete_first,
            hasDetailedDiff=True,
        )
        for path, change in answer.kinds.items():
            response.detailedDiff[path].kind = KINDS[change]
        return response

    def Create(self, request: provider_pb2.CreateRequest, context: Context) -> provider_pb2.CreateResponse:
        kind = self._kind(request.urn, context)
        inputs = read_struct(request.properties)
        with self._refusing(context, f"diffing {request.urn}"):
            planned = plan_create(kind, inputs, self.settings)
        if request.preview:
            return provider_pb2.CreateResponse(properties=write_struct(sealed(kind, planned, True)))
        self._still_running(context)
        with self._refusing(context):
            sent = creation(kind, inputs, planned, self.settings)
            try:
                id, answer = self.cloud.create(kind.token, sent)
            except self.refusals.partly as partly:
                made = cast(HalfMade, partly)
                outputs = sealed(kind, read_back(kind, {**planned, **sent}, made.outputs), False)
                reason = f"creating {request.urn}: 1 error occurred:\n\t* {partly}\n\n"
                self._half_done(context, made.id, inputs, outputs, reason)
        own: Object = {**planned, **sent}
        if "cluster" in planned:
            own["cluster"] = planned["cluster"]
        outputs = sealed(kind, read_back(kind, own, answer), False)
        return provider_pb2.CreateResponse(id=id, properties=write_struct(outputs))

    def Update(self, request: provider_pb2.UpdateRequest, context: Context) -> provider_pb2.UpdateResponse:
        kind = self._kind(request.urn, context)
        inputs, state = read_struct(request.news), read_struct(request.olds)
        with self._refusing(context, f"diffing {request.urn}"):
            plan = plan_update(kind, inputs, state, self.settings, list(request.ignoreChanges))
        if request.preview:
            return provider_pb2.UpdateResponse(properties=write_struct(sealed(kind, plan.planned, True)))
        self._still_running(context)
        if not plan.changes:
            return provider_pb2.UpdateResponse(properties=request.olds)
        try:
            sent = changes_sent(plan)
            answer = self.cloud.update(kind.token, request.id, sent.changed) if sent.changed else None
        except (self.refusals.refused, ApplyError) as refused:
            now = self.cloud.read(kind.token, request.id) or {}
            outputs = sealed(kind, read_back(kind, plan.old, now), False)
            reason = f"updating {request.urn}: 1 error occurred:\n\t* {refused}\n\n"
            self._half_done(context, request.id, inputs, outputs, reason)
        if answer is None:
            answer = self.cloud.read(kind.token, request.id) or {}
        outputs = sealed(kind, read_back(kind, sent.own, answer), False)
        return provider_pb2.UpdateResponse(properties=write_struct(outputs))

    def Read(self, request: provider_pb2.ReadRequest, context: Context) -> provider_pb2.ReadResponse:
        kind = self._kind(request.urn, context)
        with self._refusing(context, f"refreshing {request.urn}"):
            answer = self.cloud.read(kind.token, request.id)
        if answer is None:
            return provider_pb2.ReadResponse()
        outputs = read_back(kind, read_struct(request.properties), answer)
        inputs = inputs_after_read(kind, read_struct(request.inputs), outputs)
        return provider_pb2.ReadResponse(
            id=request.id, properties=write_struct(sealed(kind, outputs, False)), inputs=write_struct(inputs)
        )

    def Delete(self, request: provider_pb2.DeleteRequest, context: Context) -> Empty:
        kind = self._kind(request.urn, context)
        state = read_struct(request.properties)
        with self._refusing(context, f"deleting {request.urn}"):
            if refuse_delete(kind, request.id, state):
                self.cloud.delete(kind.token, request.id, state)
        return Empty()

    def Invoke(self, request: provider_pb2.InvokeRequest, context: Context) -> provider_pb2.InvokeResponse:
        if request.tok not in self.catalogue.invokes:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown function {request.tok}")
        with self._refusing(context, f"invoking {request.tok}"):
            answer = answer_invoke(self.cloud.invoke, request.tok, read_struct(request.args), self.settings)
        response = provider_pb2.InvokeResponse()
        # The field's name is a word of Python.
        getattr(response, "return").CopyFrom(write_struct(answer))
        return response

    @contextlib.contextmanager
    def _refusing(self, context: Context, doing: str = "") -> Iterator[None]:
        """Turn a refusal into the error that the engine shows."""
        try:
            yield
        except (PlanError, ApplyError, self.refusals.refused) as refused:
            text = f"1 error occurred:\n\t* {refused}\n\n"
            context.abort(grpc.StatusCode.UNKNOWN, f"{doing}: {text}" if doing else text)

    def _kind(self, urn: str, context: Context) -> ResourceType:
        token = urn.split("::")[2].split("$")[-1]
        kind = self.catalogue.resources.get(token)
        if kind is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unrecognized resource type: {token}")
            raise AssertionError("abort raises")
        return kind

    def _still_running(self, context: Context) -> None:
        if self.cancelled.is_set():
            context.abort(grpc.StatusCode.CANCELLED, "the operation was cancelled")

    def _half_done(self, context: Context, id: str, inputs: Object, outputs: Object, reason: str) -> NoReturn:
        """Tell the engine that the resource is there, but not as wanted: it stays in the state."""
        detail = provider_pb2.ErrorResourceInitFailed(
            id=id, properties=write_struct(outputs), inputs=write_struct(inputs), reasons=[reason]
        )
        packed = Packed()
        packed.Pack(detail)
        code = grpc.StatusCode.UNKNOWN
        message = "resource init failed"
        status = Status(code=code.value[0], message=message, details=[packed])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, message)
        raise AssertionError("abort raises")


def _logical(urn: str) -> str:
    return urn.split("::", 3)[3]


def serve(cloud: CloudSide, refusals: Refusals) -> tuple[grpc.Server, int]:
    """Start the service on loopback; returns it and its port."""
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=64),
        options=[
            ("grpc.max_receive_message_length", LARGEST_MESSAGE),
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
        ],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(cloud, refusals), server)
    bound = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, bound
