"""gRPC over unix sockets without generated code: messages are described by tables, and are plain JSON in Python.

A table names each field's number and type. Types are `string`, `bool`, `int32`, `int64`, `map` (of strings to strings)
or another message of the table; `*` before a type repeats it. Enumerations are written as `int32`, which is the same on
the wire. In JSON a field that is not sent has its zero value, a message that is not sent is absent, an `int64` is a
string.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Json: TypeAlias = dict[str, Any]
Context: TypeAlias = grpc.ServicerContext
Call: TypeAlias = Callable[[Json], Json]
Stream: TypeAlias = Callable[[Json, Context], Iterator[Json]]

LONGEST_PATH = 107
"""Bytes of a unix socket's path: `sun_path` has 108, the last one is 0. https://man7.org/linux/man-pages/man7/unix.7.html"""
SCALARS: Mapping[str, FieldDescriptorProto.Type.ValueType] = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
}


class Refusal(Exception):
    """A call is answered with an error."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True)
class Method:
    """Names of its messages, and whether the answer is a stream."""

    request: str
    response: str
    streams: bool = False


@dataclass(frozen=True)
class Api:
    """Part of one .proto file: its `package`, the fields of messages, the methods of services."""

    package: str
    messages: Mapping[str, Mapping[str, tuple[int, str]]]
    services: Mapping[str, Mapping[str, Method]]

    @cached_property
    def _classes(self) -> dict[str, type[Message]]:
        file = FileDescriptorProto(name=f"{self.package}.proto", package=self.package, syntax="proto3")
        for name, fields in self.messages.items():
            self._describe(file.message_type.add(name=name), fields)
        pool = DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        return {name: GetMessageClass(pool.FindMessageTypeByName(f"{self.package}.{name}")) for name in self.messages}

    def _describe(self, message: DescriptorProto, fields: Mapping[str, tuple[int, str]]) -> None:
        for name, (number, kind) in fields.items():
            field = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if kind.startswith("*") or kind == "map":
                field.label = FieldDescriptorProto.LABEL_REPEATED
            kind = kind.removeprefix("*")
            if kind in SCALARS:
                field.type = SCALARS[kind]
                continue
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{self.package}.{kind}"
            if kind == "map":
                # A map is a repeated message of this very name: https://protobuf.dev/programming-guides/proto3/#maps
                entry = message.nested_type.add(name="".join(map(str.capitalize, name.split("_"))) + "Entry")
                entry.options.map_entry = True
                self._describe(entry, {"key": (1, "string"), "value": (2, "string")})
                field.type_name = f".{self.package}.{message.name}.{entry.name}"

    def encode(self, name: str, content: Json) -> bytes:
        """A message's bytes; a field that the table does not have is an error."""
        return json_format.ParseDict(content, self._classes[name]()).SerializeToString()

    def decode(self, name: str, data: bytes) -> Json:
        """A message; fields that the table does not have are left out."""
        decoded: Json = json_format.MessageToDict(
            self._classes[name].FromString(data),
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        return decoded

    def handler(self, service: str, calls: Mapping[str, Call | Stream]) -> grpc.GenericRpcHandler:
        """What a server answers to a service's methods; one that is not among `calls` is not implemented."""
        methods = self.services[service]
        handlers = {name: self._method(methods[name], call) for name, call in calls.items()}
        return grpc.method_handlers_generic_handler(f"{self.package}.{service}", handlers)

    def _method(self, method: Method, call: Callable[..., Any]) -> "grpc.RpcMethodHandler[Json, Json]":
        def once(request: Json, context: Context) -> Json:
            try:
                answer: Json = call(request)
            except Refusal as refusal:
                context.abort(refusal.code, str(refusal))
            return answer

        def read(data: bytes) -> Json:
            return self.decode(method.request, data)

        def write(content: Json) -> bytes:
            return self.encode(method.response, content)

        if method.streams:
            return grpc.unary_stream_rpc_method_handler(call, read, write)
        return grpc.unary_unary_rpc_method_handler(once, read, write)

    def call(self, socket: Path, service: str, name: str, request: Json, timeout_s: float) -> Json:
        """Ask the server at a socket, which may be about to begin.

        Raises:
            grpc.RpcError: it refuses, or does not answer in time.
        """
        method = self.services[service][name]
        with grpc.insecure_channel(address(socket)) as channel:
            ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{self.package}.{service}/{name}")
            answer = ask(self.encode(method.request, request), timeout=timeout_s, wait_for_ready=True)
            return self.decode(method.response, answer)


def address(socket: Path) -> str:
    """A unix socket as gRPC writes it.

    Raises:
        ValueError: the path is longer than a socket's may be.
    """
    length = len(bytes(socket))
    if length > LONGEST_PATH:
        raise ValueError(f"{socket} has {length} bytes; the path of a unix socket has at most {LONGEST_PATH}")
    return f"unix:{socket}"


def serve(socket: Path, *handlers: grpc.GenericRpcHandler, workers: int = 8) -> grpc.Server:
    """Start a server at a socket, whose folder is made; a socket that an earlier process left there is replaced."""
    where = address(socket)
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server = grpc.server(futures.ThreadPoolExecutor(workers))
    server.add_generic_rpc_handlers(handlers)
    server.add_insecure_port(where)
    server.start()
    return server


def end(server: grpc.Server, socket: Path) -> None:
    """Stop a server, end its streams and remove its socket."""
    server.stop(None).wait()
    socket.unlink(missing_ok=True)
