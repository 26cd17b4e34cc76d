"""One run of a job."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi

from infra.components.ray_service import custom_resource, uid

FOLLOWED = ("suspend",)
"""What KubeRay acts on in a RayJob that is there (updateStatusToSuspendingIfNeeded, and the status Suspended)."""
WRITTEN_ONCE = (
    "activeDeadlineSeconds",
    "backoffLimit",
    "clusterSelector",
    "deletionStrategy",
    "entrypoint",
    "entrypointNumCpus",
    "entrypointNumGpus",
    "entrypointResources",
    "jobId",
    "managedBy",
    "metadata",
    "preRunningDeadlineSeconds",
    "rayClusterSpec",
    "runtimeEnvYAML",
    "shutdownAfterJobFinishes",
    "submissionMode",
    "submitterConfig",
    "submitterPodTemplate",
    "ttlSecondsAfterFinished",
)
"""The other fields of a RayJob's spec, of KubeRay 1.5 to 1.7 (apis/ray/v1/rayjob_types.go)."""


class RayJobArgs(TypedDict):
    """What is run."""

    manifest: Mapping[str, object]
    """The whole object; its name holds the run."""


class RayJob(pulumi.ComponentResource):
    """Makes one RayJob, whose name is the run's: with another one it is replaced, and the run before is ended first.

    Of its spec all but `suspend` is written once: KubeRay starts nothing when it changes, so that a change applies to
    the next run.
    """

    uid: pulumi.Output[str | None]
    run: pulumi.Resource
    """What is replaced when another run begins."""

    def __init__(self, name: str, args: RayJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:RayJob", name, {}, opts)
        made = custom_resource(
            name,
            args["manifest"],
            pulumi.ResourceOptions(
                parent=self,
                ignore_changes=[f"spec.{field}" for field in WRITTEN_ONCE],
                # The slice that it may still have is the next one's.
                delete_before_replace=True,
            ),
        )
        self.uid, self.run = uid(made), made
        self.register_outputs({"uid": self.uid})
