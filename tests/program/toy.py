"""A program with one dynamic resource, in place of a platform: what is tested is the way to the engine and back."""

import os
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class ToyError(Exception):
    """What a provider raises for a user to read."""


class ToyProvider(ResourceProvider):
    """Makes nothing; refuses the value `bad`, stumbles over `bug`."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        if props["value"] == "bad":
            raise ToyError("wanted a good value, found bad\nnext: write another one")
        if props["value"] == "bug":
            return CreateResult(props["no such key"], props)
        return CreateResult("toy", props)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=_olds["value"] != _news["value"])

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_news)


class Toy(Resource, module="tpu-ray", name="Toy"):
    """The resource."""

    value: pulumi.Output[str]

    def __init__(self, name: str, value: str) -> None:
        super().__init__(ToyProvider(), name, {"value": value})


def program() -> None:
    """Declares one Toy whose value the test chooses."""
    Toy("first", os.environ.get("TOY_VALUE", "good"))
    pulumi.export("endpoints", {"first": "http://127.0.0.1:1/first/v1"})
    pulumi.export("password", pulumi.Output.secret("sesame"))
