"""The plugin as the engine starts it, with what it registers written down in the engine's place."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    errors_pb2,
    provider_pb2,
    provider_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)
from pulumi.runtime.proto.status_pb2 import Status

from tests.rig.gcp.values import Object, read_struct, write_struct

PLUGIN = Path(__file__).parents[2] / "plugin"
COMPONENT = "tpu-ray:index:SlicePool"
DEADLINE_S = 120


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Takes every resource; what it is told of a resource is what the resource becomes."""

    def __init__(self) -> None:
        self.registered: list[resource_pb2.RegisterResourceRequest] = []

    def GetDeploymentInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> resource_pb2.DeploymentInfo:
        return resource_pb2.DeploymentInfo(supportedFeatures=resource_pb2.ResourceMonitorFeature.values())

    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.RegisterResourceResponse:
        self.registered.append(request)
        return resource_pb2.RegisterResourceResponse(urn=urn(request.type, request.name), object=request.object)

    def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()


class Engine(engine_pb2_grpc.EngineServicer):
    """Listens to nothing that is said."""

    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()


@dataclass(frozen=True)
class Plugin:
    """A running plugin."""

    provider: provider_pb2_grpc.ResourceProviderStub
    monitor: Monitor
    monitor_address: str

    def construct(self, name: str, inputs: Object) -> provider_pb2.ConstructResponse:
        """Make a slice pool, in a preview."""
        self.monitor.registered.clear()
        request = provider_pb2.ConstructRequest(
            project="elsewhere",
            stack="dev",
            dryRun=True,
            monitorEndpoint=self.monitor_address,
            type=COMPONENT,
            name=name,
            inputs=write_struct(inputs),
        )
        answer: provider_pb2.ConstructResponse = self.provider.Construct(request, timeout=DEADLINE_S)
        return answer

    def children(self) -> list[resource_pb2.RegisterResourceRequest]:
        """What was registered for it besides the component, by name: all is registered at once."""
        return sorted((one for one in self.monitor.registered if one.type != COMPONENT), key=lambda one: one.name)

    def made(self) -> list[Object]:
        """The properties of the children."""
        return [read_struct(one.object) for one in self.children()]

    def refusal(self, name: str, inputs: Object) -> dict[str, str]:
        """The message for a slice pool that is not made, as "", and the reasons by argument.

        Fails where the plugin tells them in another way.
        """
        with pytest.raises(grpc.RpcError) as refused:
            self.construct(name, inputs)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, refused.value.details()
        details = {datum.key: datum.value for datum in refused.value.trailing_metadata()}
        problems = errors_pb2.InputPropertiesError()
        assert Status.FromString(details["grpc-status-details-bin"]).details[0].Unpack(problems)
        message = str(refused.value.details())
        return {"": message} | {problem.property_path: problem.reason for problem in problems.errors}


def urn(type: str, name: str) -> str:
    """A resource's address."""
    return f"urn:pulumi:dev::elsewhere::{type}::{name}"


@contextmanager
def plugin(folder: Path) -> Iterator[Plugin]:
    """The plugin of plugin/, started as the engine does, in a folder that has nothing to do with it."""
    monitor = Monitor()
    server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(Engine(), server)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    command = [str(PLUGIN / "pulumi-resource-tpu-ray"), address]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield Plugin(provider_pb2_grpc.ResourceProviderStub(channel), monitor, address)
        finally:
            process.terminate()
            server.stop(None).wait()
