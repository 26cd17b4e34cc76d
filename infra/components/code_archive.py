"""An archive of code in the bucket, under the name of its content."""

from pathlib import Path
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp


class CodeArchiveArgs(TypedDict):
    """What is put where."""

    bucket: str
    path: str
    """The object's name in the bucket, which holds the digest of the content."""
    file: str
    """The archive on this machine."""


class CodeArchive(pulumi.ComponentResource):
    """Puts one archive into the bucket. It stays there when nothing new is made from it any more: what was started with
    it fetches it again on each host that joins, and a run may be long.
    """

    def __init__(self, name: str, args: CodeArchiveArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:CodeArchive", name, {}, opts)
        gcp.storage.BucketObject(
            name,
            bucket=args["bucket"],
            name=args["path"],
            source=pulumi.FileAsset(str(Path(args["file"]))),
            content_type="application/zip",
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )
        self.register_outputs({})
