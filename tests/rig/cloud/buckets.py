"""Buckets with their content, where the settings name a folder for them: each bucket is a folder in it.

Pods see that folder and write there, as they do through Cloud Storage FUSE; what the program puts into a bucket lies
beside it.
"""

import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.rig.cloud.held import Thing
from tests.rig.cloud.settings import Settings
from tests.rig.cloud.world import BUCKET, BUCKET_OBJECT, text
from tests.rig.gcp.values import Object, plain_object

EVERYBODY = 0o777
"""Whoever a pod runs as: FUSE shows a bucket as the mounting user's own."""


def keep_content(settings: Settings, token: str, thing: Thing) -> None:
    """A resource was made or changed: a bucket gets its folder, an object its file."""
    if token == BUCKET:
        folder = _folder(settings, text(thing.outputs.get("name")))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(EVERYBODY)
    elif token == BUCKET_OBJECT:
        folder = _folder(settings, text(thing.outputs.get("bucket")))
        if folder is not None:
            _write(folder, _file(folder, text(thing.outputs.get("name"))), _content_of(thing.outputs))


def drop_content(settings: Settings, token: str, thing: Thing) -> None:
    """A resource is gone: a bucket with all that pods wrote, an object unless a pod removed it already."""
    if token == BUCKET:
        folder = _folder(settings, text(thing.outputs.get("name")))
        if folder is not None and folder.exists():
            shutil.rmtree(folder)
    elif token == BUCKET_OBJECT:
        folder = _folder(settings, text(thing.outputs.get("bucket")))
        if folder is not None:
            file = _file(folder, text(thing.outputs.get("name")))
            file.unlink(missing_ok=True)
            # A bucket has no folders of its own.
            for parent in file.parents:
                if parent == folder or not parent.is_dir() or any(parent.iterdir()):
                    break
                parent.rmdir()


def empty(settings: Settings, bucket: str) -> bool:
    """Whether nothing lies in the bucket's folder. A folder that a pod made counts: FUSE makes an object of it."""
    folder = _folder(settings, bucket)
    return folder is None or not folder.is_dir() or not any(folder.iterdir())


def files(settings: Settings, bucket: str, prefix: str = "") -> list[str]:
    """Names of the objects in a bucket's folder that begin with the prefix, in order."""
    folder = _folder(settings, bucket)
    if folder is None or not folder.is_dir():
        return []
    names = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return sorted(name for name in names if name.startswith(prefix))


def content(settings: Settings, bucket: str, name: str) -> str | None:
    """What an object in a bucket's folder holds; None where there is none."""
    folder = _folder(settings, bucket)
    file = None if folder is None else _file(folder, name)
    return file.read_text(encoding="utf-8", errors="replace") if file is not None and file.is_file() else None


def _folder(settings: Settings, bucket: str) -> Path | None:
    if settings.buckets is None:
        return None
    return _file(Path(settings.buckets), bucket)


def _file(folder: Path, name: str) -> Path:
    steps = name.split("/")
    if any(step in ("", ".", "..") for step in steps):
        raise ValueError(f"{name!r} has no place in a folder")
    return folder.joinpath(*steps)


def _write(folder: Path, file: Path, data: bytes) -> None:
    """Write a file so that a pod sees all of it or nothing, and none beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for parent in file.parents:
        if parent == folder:
            break
        parent.chmod(EVERYBODY)
    handle, temporary = tempfile.mkstemp(dir=folder.parent)
    with os.fdopen(handle, "wb") as whole:
        whole.write(data)
    Path(temporary).chmod(0o644)
    Path(temporary).replace(file)


def _content_of(inputs: Object) -> bytes:
    """What an object is made of: `content`, or `source` as the engine hands it over.

    https://github.com/pulumi/pulumi/blob/v3.274.1/sdk/go/common/resource/asset/asset.go
    """
    if inputs.get("content") is not None:
        return text(inputs["content"]).encode()
    return _asset(plain_object(inputs.get("source")))


def _asset(source: Object) -> bytes:
    """An asset's bytes; an archive of several is a zip, as the provider makes it."""
    if "text" in source:
        return text(source["text"]).encode()
    if "path" in source and not Path(text(source["path"])).is_dir():
        return Path(text(source["path"])).read_bytes()
    if "uri" in source:
        raise ValueError(f"{source['uri']}: nothing is fetched from elsewhere here")
    packed = io.BytesIO()
    if "path" in source or "assets" in source:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in _members(source):
                archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


def _members(source: Object) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of what is in an archive; an archive within it is a folder of it."""
    if "path" in source:
        root = Path(text(source["path"]))
        for file in sorted(file for file in root.rglob("*") if file.is_file()):
            yield file.relative_to(root).as_posix(), file.read_bytes()
    for name, one in sorted(plain_object(source.get("assets")).items()):
        inner = plain_object(one)
        if "assets" in inner or ("path" in inner and Path(text(inner["path"])).is_dir()):
            yield from ((f"{name}/{below}", data) for below, data in _members(inner))
        else:
            yield name, _asset(inner)
