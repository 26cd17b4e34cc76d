"""The Google APIs that a stack needs, enabled before anything else is asked for."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

NEEDED = (
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
    "tpu.googleapis.com",
)
"""https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/tree/main/ai-ml/gke-ray/tpu, IAM for the account,
and the resource manager for its roles in the project."""


class ApisArgs(TypedDict):
    """The project in which they are enabled."""

    project: str


class Apis(pulumi.ComponentResource):
    """Enables the project's APIs. They stay enabled when the stack is destroyed: others may use them too."""

    def __init__(self, name: str, args: ApisArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Apis", name, {}, opts)
        for service in NEEDED:
            gcp.projects.Service(
                f"{name}-{service.partition('.')[0]}",
                project=args["project"],
                service=service,
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
