"""A place for container images."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp


class RegistryArgs(TypedDict):
    """Where the repository is made, and what it is called."""

    project: str
    region: str
    repository: str


class Registry(pulumi.ComponentResource):
    """Makes an Artifact Registry repository for images, `<region>-docker.pkg.dev/<project>/<repository>`."""

    url: pulumi.Output[str]

    def __init__(self, name: str, args: RegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Registry", name, {}, opts)
        repository = gcp.artifactregistry.Repository(
            name,
            project=args["project"],
            location=args["region"],
            repository_id=args["repository"],
            format="DOCKER",
            description="Images of tpu-ray",
            opts=pulumi.ResourceOptions(parent=self),
        )
        place = f"{args['region']}-docker.pkg.dev/{args['project']}"
        self.url = pulumi.Output.concat(place, "/", repository.repository_id)
        self.register_outputs({"url": self.url})
