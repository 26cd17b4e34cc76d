"""The provider on a port of its own, with a cloud in memory behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tests.gcp_provider.fake import FakeCloud, FakeHalfMade, FakeRefused
from tests.rig.gcp.server import Refusals, serve
from tests.rig.gcp.values import Object, read_struct, write_struct

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"


def urn(token: str, name: str) -> str:
    """A resource's address."""
    return f"urn:pulumi:dev::project::{token}::{name}"


@dataclass
class Engine:
    """The calls of an engine on one provider."""

    stub: provider_pb2_grpc.ResourceProviderStub
    cloud: FakeCloud

    def check(self, token: str, name: str, news: Object, olds: Object | None = None) -> Object:
        """Checked inputs; fails where the provider refuses them."""
        answer = self.ask_check(token, name, news, olds)
        assert list(answer.failures) == []
        return read_struct(answer.inputs)

    def ask_check(self, token: str, name: str, news: Object, olds: Object | None = None) -> provider_pb2.CheckResponse:
        """The provider's answer."""
        answer: provider_pb2.CheckResponse = self.stub.Check(
            provider_pb2.CheckRequest(
                urn=urn(token, name), news=write_struct(news), olds=write_struct(olds or {}), randomSeed=b"seed"
            )
        )
        return answer

    def create(self, token: str, name: str, inputs: Object, preview: bool = False) -> tuple[str, Object]:
        """Id and outputs."""
        request = provider_pb2.CreateRequest(urn=urn(token, name), properties=write_struct(inputs), preview=preview)
        answer = self.stub.Create(request)
        return answer.id, read_struct(answer.properties)

    def diff(self, token: str, name: str, inputs: Object, state: Object) -> provider_pb2.DiffResponse:
        """The provider's answer."""
        answer: provider_pb2.DiffResponse = self.stub.Diff(
            provider_pb2.DiffRequest(urn=urn(token, name), news=write_struct(inputs), olds=write_struct(state))
        )
        return answer

    def update(self, token: str, name: str, id: str, inputs: Object, state: Object) -> Object:
        """Outputs after an update."""
        request = provider_pb2.UpdateRequest(
            urn=urn(token, name), id=id, news=write_struct(inputs), olds=write_struct(state)
        )
        return read_struct(self.stub.Update(request).properties)

    def delete(self, token: str, name: str, id: str, state: Object) -> None:
        """Take a resource away."""
        self.stub.Delete(provider_pb2.DeleteRequest(urn=urn(token, name), id=id, properties=write_struct(state)))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A configured provider over gRPC."""
    cloud = FakeCloud()
    server, port = serve(cloud, Refusals(FakeRefused, FakeHalfMade))
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        args = write_struct({"project": "proj", "zone": "us-east5-b", "defaultLabels": '{"team":"a"}'})
        stub.Configure(provider_pb2.ConfigureRequest(args=args))
        yield Engine(stub, cloud)
    server.stop(None).wait()
