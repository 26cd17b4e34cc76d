"""A model of the hub in the bucket, brought there once."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s


class ModelStageArgs(TypedDict):
    """What is run."""

    manifest: Mapping[str, object]
    """A Job that ends when the model is there."""
    timeout_s: int
    """How long the Job is waited for."""


class ModelStage(pulumi.ComponentResource):
    """Makes one Job and waits for its end. It is made once: an image or a limit that changes later brings no other
    model, and another model is another Job.
    """

    def __init__(self, name: str, args: ModelStageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:ModelStage", name, {}, opts)
        manifest, timeout = args["manifest"], f"{args['timeout_s']}s"
        k8s.batch.v1.Job(
            name,
            metadata=manifest["metadata"],
            spec=manifest["spec"],
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=["spec"],
                delete_before_replace=True,
                custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout),
            ),
        )
        self.register_outputs({})
