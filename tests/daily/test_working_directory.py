"""The working directory as a zip file: which files, always the same bytes, and not too many."""

import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from infra.platforms import working_directory
from infra.platforms.working_directory import packed
from infra.stack import StackError


def names(content: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return file.namelist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("my.py", "a/b.py", "data.bin", ".venv/lib.py", "a/__pycache__/b.pyc", ".git/HEAD"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "my.py").chmod(0o755)
    (tmp_path / "gone").symlink_to("/no/such/file")
    return tmp_path


def test_what_no_command_needs_is_left_out(folder: Path) -> None:
    assert names(packed(folder)) == ["a/b.py", "data.bin", "my.py"]


def test_in_a_repository_what_git_ignores_is_left_out(folder: Path) -> None:
    (folder / ".git" / "HEAD").unlink()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text("*.bin\n")
    assert names(packed(folder)) == [".gitignore", "a/b.py", "my.py"]
    assert names(packed(folder / "a")) == ["b.py"]


def test_the_same_files_are_the_same_bytes(folder: Path) -> None:
    before = packed(folder)
    (folder / "my.py").touch()
    assert packed(folder) == before
    (folder / "my.py").chmod(0o644)
    assert packed(folder) != before


def test_too_much_is_refused_with_the_largest_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_directory, "MOST_BYTES", 2**20)
    (folder / "data.bin").write_bytes(bytes(range(256)) * 4096)
    assert packed(folder), "it is the zip file's size that counts"
    with (folder / "data.bin").open("wb") as file, Path("/dev/urandom").open("rb") as noise:
        file.write(noise.read(2 * 2**20))
    with pytest.raises(StackError, match=r"more than the 1 MiB that Ray takes; the largest files: data.bin \(2 MiB\)"):
        packed(folder)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="there is no file in it"):
        packed(tmp_path)
