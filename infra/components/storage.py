"""The bucket for checkpoints and exported models, and who may use it."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

ROLES = ("roles/storage.objectUser", "roles/storage.legacyBucketReader")
"""Reading and writing objects; pyarrow also asks for the bucket itself."""


class StorageArgs(TypedDict):
    """What decides whether there is a bucket at all is plain."""

    project: str
    region: str
    bucket: str
    make: bool
    """Whether the bucket is made; false: it is there already, and only the access to it is given."""
    delete: bool
    """Whether it is deleted, with all that is in it, when the stack is destroyed."""
    members: Sequence[pulumi.Input[str]]
    """Who may read and write, as IAM writes it: `principal://...` or `serviceAccount:...`."""


class Storage(pulumi.ComponentResource):
    """Makes a bucket, or takes one, and gives the members access to it.

    The bucket stays when the stack is destroyed unless `delete` says otherwise: checkpoints are worth more than the
    slices that made them.
    """

    url: pulumi.Output[str]

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Storage", name, {}, opts)
        bucket: pulumi.Input[str] = args["bucket"]
        if args["make"]:
            bucket = gcp.storage.Bucket(
                name,
                name=args["bucket"],
                project=args["project"],
                location=args["region"].upper(),
                uniform_bucket_level_access=True,
                public_access_prevention="enforced",
                force_destroy=args["delete"],
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=not args["delete"]),
            ).name
        for number, member in enumerate(args["members"]):
            for role in ROLES:
                gcp.storage.BucketIAMMember(
                    f"{name}-{number}-{role.rpartition('.')[2]}",
                    bucket=bucket,
                    role=role,
                    member=member,
                    opts=pulumi.ResourceOptions(parent=self),
                )
        self.url = pulumi.Output.concat("gs://", bucket)
        self.register_outputs({"url": self.url})
