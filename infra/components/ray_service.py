"""One RayService."""

from collections.abc import Mapping
from copy import copy
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Pulumi's own wait knows only that the object exists; whether it answers is another resource's."""


class RayServiceArgs(TypedDict):
    """What is served."""

    manifest: Mapping[str, object]
    """The whole object."""
    beside: bool
    """Whether a changed Ray cluster may come up beside the old one; otherwise the old one goes first."""


class RayService(pulumi.ComponentResource):
    """Makes one RayService. KubeRay keeps the Ray cluster that it makes of it; nothing of that is touched here."""

    uid: pulumi.Output[str]

    def __init__(self, name: str, args: RayServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A component is not replaced itself; its RayService is.
        own = copy(opts) if opts else pulumi.ResourceOptions()
        replace_with, own.replace_with = own.replace_with, None
        super().__init__("tpu-ray:index:RayService", name, {}, own)
        made = custom_resource(
            name,
            args["manifest"],
            pulumi.ResourceOptions(
                parent=self,
                # The name is fixed, and a second one of it would be deleted by the end of a replacement:
                # https://github.com/pulumi/pulumi-kubernetes/issues/4522
                delete_before_replace=True,
                # With upgradeStrategy None KubeRay takes a changed cluster and does nothing with it.
                replace_on_changes=None if args["beside"] else ["spec.rayClusterConfig"],
                replace_with=replace_with,
            ),
        )
        self.uid = made.metadata["uid"]
        self.register_outputs({"uid": self.uid})


def custom_resource(
    name: str, manifest: Mapping[str, object], opts: pulumi.ResourceOptions
) -> k8s.apiextensions.CustomResource:
    """The object of a manifest, which nobody waits for."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)
    return k8s.apiextensions.CustomResource(
        name,
        api_version=str(manifest["apiVersion"]),
        kind=str(manifest["kind"]),
        metadata={**metadata, "annotations": {**metadata.get("annotations", {}), **SKIP_AWAIT}},
        spec=manifest["spec"],
        opts=opts,
    )
