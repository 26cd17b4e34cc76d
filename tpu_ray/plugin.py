"""The components for programs in other languages, over Pulumi's plugin protocol: `pulumi-resource-tpu-ray`."""

import sys
from importlib.metadata import version

import pulumi
from pulumi.output import Unknown
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.analyzer import ComponentDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from infra.components.arguments import ArgumentsError
from tpu_ray import Network, NodeAccount, SlicePool

NAME = "tpu-ray"
COMPONENT_TYPES: tuple[type[pulumi.ComponentResource], ...] = (Network, NodeAccount, SlicePool)
"""What is offered."""


class Components(ComponentProvider):
    """Pulumi's host of Python components, with a user's mistakes told as such, not as a program's failure.

    https://github.com/pulumi/pulumi/blob/v3.272.0/sdk/python/lib/pulumi/provider/experimental/component.py
    """

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Make a component.

        Raises:
            pulumi.InputPropertiesError: the arguments are wrong, told in the names that the program uses.
        """
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, ArgumentsError):
                mapping = self._component_defs[resource_type.rpartition(":")[2]].inputs_mapping
                told = error.inner.renamed({python: called for called, python in mapping.items()})
                raise _for_the_engine(told, inputs) from None
            raise

    def map_inputs(self, inputs: pulumi.Inputs, component_def: ComponentDefinition) -> pulumi.Inputs:
        """The arguments by their Python names; what is wrong with them is told by the component, all at once.

        The arguments offered are flat. The protocol has one type of numbers: whole ones come as 2.0.
        """
        return {
            component_def.inputs_mapping.get(name, name): int(value)
            if isinstance(value, float) and value.is_integer()
            else value
            for name, value in inputs.items()
        }


def _for_the_engine(error: ArgumentsError, inputs: pulumi.Inputs) -> pulumi.InputPropertiesError:
    """The same as host and engine can show it: the host takes an error that is also a `RunError` for one of its own.

    The engine prints the value of a wrong property, and panics where that is an output that is not known yet (3.274.1):
    of such a property the message tells.
    """
    outputs = {name for name, value in inputs.items() if isinstance(value, pulumi.Output | Unknown)}
    details = error.errors or []
    told = [f"{one['property_path']}: {one['reason']}" for one in details if one["property_path"] in outputs]
    shown = [one for one in details if one["property_path"] not in outputs]
    return pulumi.InputPropertiesError("; ".join([error.message, *told]), shown)


def serve() -> None:
    """Serve the engine that started this process until it goes."""
    main(Components(list(COMPONENT_TYPES), NAME, version=version(NAME)), sys.argv[1:])


if __name__ == "__main__":
    serve()
