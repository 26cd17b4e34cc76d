"""Buckets that are folders: what the program puts there, and what pods write there."""

import asyncio
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from pulumi import AssetArchive, FileArchive, FileAsset, RemoteAsset, StringAsset
from pulumi.runtime.rpc import serialize_property

from tests.cloud.asked import cloud
from tests.cloud.rules import refused_delete
from tests.rig.cloud import drift, invokes
from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.refused import Refused
from tests.rig.cloud.world import BUCKET, BUCKET_OBJECT
from tests.rig.gcp.values import Object, Value, plain_list, plain_object, read_struct

RUNS: Object = {"name": "runs", "location": "us-east5"}


def as_received(value: object) -> Value:
    """A program's value as the provider gets it from the engine."""
    # Not `asyncio.run`: it leaves the thread without a loop, and the SDK's mocks look for one.
    loop = asyncio.new_event_loop()
    try:
        plain: Any = loop.run_until_complete(serialize_property(value, [], None))
    finally:
        loop.close()
    return read_struct(ParseDict({"source": plain}, Struct()))["source"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "buckets"


@pytest.fixture
def one(tmp_path: Path, folder: Path) -> Cloud:
    made = cloud(tmp_path / "cloud", buckets=str(folder))
    made.create(BUCKET, RUNS)
    return made


def put(one: Cloud, **inputs: Value) -> str:
    id, _ = one.create(BUCKET_OBJECT, {"bucket": "runs", "name": "code/a.zip", **inputs})
    return id


def names(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_a_bucket_comes_and_goes_with_its_folder(one: Cloud, folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["runs"]
    one.delete(BUCKET, "runs", {})
    assert list(folder.iterdir()) == []


def test_a_bucket_that_was_there_has_a_folder(tmp_path: Path, folder: Path) -> None:
    there = {"token": BUCKET, "inputs": {**RUNS, "name": "theirs", "project": "other"}}
    cloud(tmp_path / "cloud", buckets=str(folder), existing=[there])
    assert (folder / "theirs").is_dir()


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    made = cloud(tmp_path / "cloud")
    made.create(BUCKET, RUNS)
    put(made, source=as_received(FileAsset("not there")))
    made.delete(BUCKET, "runs", {})
    assert [path.name for path in tmp_path.iterdir()] == ["cloud"]


def test_an_objects_file_holds_its_source_and_follows_it(one: Cloud, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"\x00first")
    id = put(one, source=as_received(FileAsset(str(tmp_path / "a.zip"))))
    assert (folder / "runs/code/a.zip").read_bytes() == b"\x00first"
    one.update(BUCKET_OBJECT, id, {"source": as_received(StringAsset("second"))})
    assert (folder / "runs/code/a.zip").read_text() == "second"
    one.update(BUCKET_OBJECT, id, {"source": None, "content": "third"})
    assert (folder / "runs/code/a.zip").read_text() == "third"
    assert [path.name for path in folder.iterdir()] == ["runs"]
    one.delete(BUCKET_OBJECT, id, {})
    assert list((folder / "runs").iterdir()) == []


def test_an_archive_is_a_zip(one: Cloud, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tree/inner").mkdir(parents=True)
    (tmp_path / "tree/inner/b.py").write_text("b = 1\n")
    put(one, source=as_received(FileArchive(str(tmp_path / "tree"))))
    packed = (folder / "runs/code/a.zip").read_bytes()
    assert names(packed) == {"inner/b.py": b"b = 1\n"}

    (tmp_path / "ready.zip").write_bytes(packed)
    put(one, name="ready", source=as_received(FileArchive(str(tmp_path / "ready.zip"))))
    assert (folder / "runs/ready").read_bytes() == packed

    several = AssetArchive({"main.py": StringAsset("pass\n"), "tree": FileArchive(str(tmp_path / "tree"))})
    put(one, name="several", source=as_received(several))
    assert names((folder / "runs/several").read_bytes()) == {"main.py": b"pass\n", "tree/inner/b.py": b"b = 1\n"}


def test_what_lies_elsewhere_is_not_fetched_and_no_object_leaves_its_bucket(one: Cloud, folder: Path) -> None:
    with pytest.raises(ValueError, match="nothing is fetched"):
        put(one, source=as_received(RemoteAsset("https://example.com/a.zip")))
    with pytest.raises(ValueError, match="no place in a folder"):
        put(one, name="../other", content="x")
    assert one.read(BUCKET_OBJECT, "runs-../other") is None
    assert [path.name for path in folder.rglob("*")] == ["runs"]


def test_a_bucket_that_pods_wrote_to_stays_unless_told(one: Cloud, folder: Path) -> None:
    (folder / "runs/story-r1").mkdir()
    (folder / "runs/story-r1/step").write_text("10")
    assert refused_delete(one, BUCKET, "runs") == (
        "Error trying to delete bucket runs without `force_destroy` set to true"
    )
    assert (folder / "runs/story-r1/step").read_text() == "10"
    one.delete(BUCKET, "runs", {"forceDestroy": True})
    assert not (folder / "runs").exists()


def test_a_bucket_from_which_all_is_gone_can_be_deleted(one: Cloud, folder: Path) -> None:
    id = put(one, content="x")
    (folder / "runs/code/a.zip").unlink()
    one.delete(BUCKET_OBJECT, id, {})
    one.delete(BUCKET, "runs", {})
    assert one.read(BUCKET, "runs") is None


def test_what_pods_wrote_beside_an_object_stays_when_it_goes(one: Cloud, folder: Path) -> None:
    id = put(one, content="x")
    (folder / "runs/code/log").write_text("of a pod")
    one.delete(BUCKET_OBJECT, id, {})
    assert [path.name for path in (folder / "runs").rglob("*")] == ["code", "log"]


def test_the_program_reads_what_pods_wrote(one: Cloud, folder: Path) -> None:
    (folder / "runs/story-r1/export").mkdir(parents=True)
    (folder / "runs/story-r1/export/export.json").write_text('{"step": 10}')
    put(one, content="x")
    listed = one.invoke(invokes.OBJECTS, {"bucket": "runs", "prefix": "story-r1/"})
    assert [plain_object(found)["name"] for found in plain_list(listed["bucketObjects"])] == [
        "story-r1/export/export.json"
    ]
    assert len(plain_list(one.invoke(invokes.OBJECTS, {"bucket": "runs"})["bucketObjects"])) == 2
    read = one.invoke(invokes.CONTENT, {"bucket": "runs", "name": "story-r1/export/export.json"})
    assert read["content"] == '{"step": 10}'
    with pytest.raises(Refused, match="404"):
        one.invoke(invokes.CONTENT, {"bucket": "runs", "name": "story-r2/export/export.json"})


def test_what_somebody_deletes_is_gone_from_the_folder(one: Cloud, folder: Path) -> None:
    id = put(one, content="x")
    drift.deleted_by_hand(one, BUCKET_OBJECT, id)
    assert list((folder / "runs").iterdir()) == []
    drift.deleted_by_hand(one, BUCKET, "runs")
    assert list(folder.iterdir()) == []
