"""One run of a job."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from infra.components.ray_service import custom_resource, uid


class RayJobArgs(TypedDict):
    """What is run."""

    manifest: Mapping[str, object]
    """The whole object; its name holds the run."""


class RayJob(pulumi.ComponentResource):
    """Makes one RayJob. Its spec is written once: KubeRay starts nothing when it changes, so that a change applies to
    the next run, which has another name.
    """

    uid: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:RayJob", name, {}, opts)
        made = custom_resource(name, args["manifest"], pulumi.ResourceOptions(parent=self, ignore_changes=["spec"]))
        self.uid = uid(made)
        self.register_outputs({"uid": self.uid})
