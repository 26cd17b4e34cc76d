"""How code comes to the pods of a gke stack: in their image, or as an archive in the bucket."""

import os
from collections.abc import Sequence
from pathlib import Path

import pulumi

from infra.components.code_archive import CodeArchive
from infra.plan.code import ROOT, SERVE_ENTRY, TRAIN_ENTRY, Archive, archive_of
from infra.platforms.gke.bucket_volume import bucket_of, in_pods
from infra.platforms.local.folders import home
from infra.stack import GkePlatform, StackSpec
from workloads.spec import EngineSpec, JobSpec, ServiceSpec

Stamp = tuple[tuple[str, int, int], ...]

_made: dict[str, tuple[Stamp, Archive]] = {}


def service_code(platform: GkePlatform, service: ServiceSpec) -> Archive | None:
    """The archive of a service; None where its code is in the image.

    Other engines than the bundled one bring their code in the image, and with it what they import of `workloads`: part
    of it in an archive would hide the rest.
    """
    bundled = isinstance(service.engine, EngineSpec)
    return _archive(SERVE_ENTRY) if platform.code == "archive" and bundled else None


def job_code(platform: GkePlatform, job: JobSpec) -> Archive | None:
    """The archive of a job; None where its code is in the image, as that of a user's own command is: with an archive
    it would not even run in the folder that it was written for."""
    return _archive(TRAIN_ENTRY) if platform.code == "archive" and job.entrypoint is None else None


def runtime_env(platform: GkePlatform, archive: Archive | None) -> dict[str, str]:
    """What Ray is told of the code; nothing where it is in the image.

    The archive is read through the mounted bucket, because Ray's own `gs://` wants Google's client in the image. What
    is installed is never touched: a pod that installs packages when it starts is another one each time.
    """
    return {"working_dir": f"file://{in_pods(platform.storage)}/{_path(archive)}"} if archive else {}


def deploy_code(platform: GkePlatform, stack: StackSpec, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Put the archives that the stack's services and jobs need into the bucket, each once."""
    wanted: Sequence[Archive | None] = [
        *(service_code(platform, service) for service in stack.services),
        *(job_code(platform, job) for job in stack.jobs),
    ]
    archives = {archive.digest: archive for archive in wanted if archive}
    folder = platform.storage.removeprefix("gs://").partition("/")[2].strip("/")
    return [
        CodeArchive(
            f"code-{digest[:12]}",
            {
                "bucket": bucket_of(platform.storage),
                "path": f"{folder}/{_path(archive)}".lstrip("/"),
                "file": str(_written(archive)),
            },
            opts,
        )
        for digest, archive in archives.items()
    ]


def _path(archive: Archive) -> str:
    return f"code/{archive.name}"


def _archive(entry: str) -> Archive:
    """Made once for the same files: a stack of a hundred services asks as often."""
    stamp = tuple(
        (str(path), status.st_mtime_ns, status.st_size)
        for path in sorted(ROOT.joinpath("workloads").rglob("*"))
        if "__pycache__" not in path.parts and path.is_file()
        for status in [path.stat()]
    )
    known = _made.get(entry)
    if known is None or known[0] != stamp:
        known = _made[entry] = (stamp, archive_of(entry, ROOT))
    return known[1]


def _written(archive: Archive) -> Path:
    """The archive as a file, where Pulumi finds it until it is uploaded."""
    path = home() / "code" / archive.name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(archive.zipped())
        part.replace(path)
    return path
