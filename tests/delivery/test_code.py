"""Archives of code: what is in them, what changes their name, and that Ray unpacks them as they are meant."""

import ast
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from infra.plan.code import ROOT, SERVE_ENTRY, TRAIN_ENTRY, Archive, archive_of, closure


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of `workloads` to edit."""
    shutil.copytree(ROOT / "workloads", tmp_path / "workloads", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def names(root: Path) -> tuple[str, str]:
    """Of the service's and of the job's archive."""
    return archive_of(SERVE_ENTRY, root).name, archive_of(TRAIN_ENTRY, root).name


def edit(root: Path, file: str) -> None:
    path = root / "workloads" / file
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("file", "service", "job"),
    [
        ("serve/http.py", True, False),
        # Named in a text alone, and imported on the hosts.
        ("serve/jax_engine.py", True, False),
        ("train/loop.py", False, True),
        ("data/texts/python-reference.txt.gz", False, True),
        ("models/llama.py", True, True),
        ("spec/launch.py", True, True),
        ("__init__.py", True, True),
        # What no run reads.
        ("py.typed", False, False),
    ],
)
def test_an_edit_changes_the_archives_that_hold_the_file(copy: Path, file: str, service: bool, job: bool) -> None:
    before = names(copy)
    edit(copy, file)
    after = names(copy)
    assert (before[0] != after[0], before[1] != after[1]) == (service, job)


def test_the_same_files_make_the_same_bytes(copy: Path, tmp_path: Path) -> None:
    """Whatever their dates, their folder and their rights: a colleague's `up` finds nothing new."""
    first = archive_of(TRAIN_ENTRY, ROOT)
    for path in (tmp_path / "workloads").rglob("*.py"):
        path.touch()
        path.chmod(0o600)
    second = archive_of(TRAIN_ENTRY, copy)
    assert (first.name, first.zipped()) == (second.name, second.zipped())


def test_an_archive_is_named_after_all_that_is_in_it() -> None:
    assert len({Archive(files).name for files in ({"a": b"bc"}, {"ab": b"c"}, {"a": b"b", "c": b""}, {"a": b"b"})}) == 4


@pytest.mark.parametrize("entry", [SERVE_ENTRY, TRAIN_ENTRY])
def test_nothing_of_the_package_that_is_imported_is_missing(entry: str) -> None:
    """Held apart from how the archive is made: every `workloads` name in the archive's own sources is in it."""
    files = archive_of(entry).files
    for name, content in files.items():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(content)):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, name
                found = [node.module]
            for module in found:
                if module.split(".")[0] == "workloads":
                    base = module.replace(".", "/")
                    assert {f"{base}.py", f"{base}/__init__.py"} & set(files), (name, module)


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import workloads.b", {"b.py"}),
        ("from workloads import b", {"b.py"}),
        ("from . import b", {"b.py"}),
        ("from .b import thing", {"b.py"}),
        ("def f():\n    from workloads.c.d import x", {"c/__init__.py", "c/d.py"}),
        ("from workloads.c import d", {"c/__init__.py", "c/d.py"}),
        ("NAME = 'workloads.c.d:Thing'", {"c/__init__.py", "c/d.py"}),
        ("import workloads.c.d as e", {"c/__init__.py", "c/d.py"}),
        ("import json, numpy.linalg", set()),
        ("TEXT = 'words'", {"words/one.txt"}),
        ("TEXT = 'no such word'", set()),
    ],
)
def test_ways_to_import(tmp_path: Path, text: str, imported: set[str]) -> None:
    package = tmp_path / "workloads"
    (package / "c").mkdir(parents=True)
    (package / "words").mkdir()
    for name in ("__init__.py", "b.py", "c/__init__.py", "c/d.py", "words/one.txt"):
        (package / name).write_text("")
    (package / "a.py").write_text(text)
    found = {path.relative_to(package).as_posix() for path in closure(["workloads.a"], tmp_path)}
    assert found == {"__init__.py", "a.py"} | imported


def test_an_entry_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"no module workloads\.nothing"):
        closure(["workloads.nothing"])


def test_a_users_own_files_go_along_without_caches_and_hidden_ones(tmp_path: Path) -> None:
    for name in ("main.py", "data/a.bin", ".env", ".git/config", "__pycache__/main.pyc"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    with_own, without = archive_of(TRAIN_ENTRY, own=tmp_path), archive_of(TRAIN_ENTRY)
    assert set(with_own.files) - set(without.files) == {"main.py", "data/a.bin"}
    assert with_own.name != without.name


def test_ray_unpacks_it_into_a_folder_with_workloads_in_it(tmp_path: Path) -> None:
    """Ray takes a single folder at the top of a zip away, which must not be `workloads` itself."""
    from ray._private.runtime_env.packaging import unzip_package

    archive = archive_of(SERVE_ENTRY)
    packed = tmp_path / archive.name
    packed.write_bytes(archive.zipped())
    with zipfile.ZipFile(io.BytesIO(archive.zipped())) as zipped:
        assert zipped.testzip() is None
    unzip_package(str(packed), str(tmp_path / "out"), remove_top_level_directory=True, unlink_zip=False)
    found = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")
    }
    assert {name: content for name, content in found.items() if not name.endswith("/")} == dict(archive.files)
