"""The working directory as one zip file: the same bytes for the same files, so that it is uploaded once."""

import io
import os
import stat
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from infra.stack import Problem, StackError

MOST_BYTES = 100 * 2**20
"""What Ray's dashboard takes in one request (DASHBOARD_CLIENT_MAX_SIZE of ray/_private/ray_constants.py)."""
LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"}
)
GIT_S = 60
ZIP_TIME = (2020, 1, 1, 0, 0, 0)


def packed(folder: Path) -> bytes:
    """The folder's files; in a Git repository those that Git does not ignore.

    Raises:
        StackError: there are none, or more than Ray takes.
    """
    content = io.BytesIO()
    sizes: list[tuple[int, str]] = []
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(_files(folder)):
            name = path.relative_to(folder).as_posix()
            size = path.stat().st_size
            sizes.append((size, name))
            if content.tell() > MOST_BYTES or size > 20 * MOST_BYTES:
                raise _too_large(folder, sizes)
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.external_attr = (stat.S_IFREG | (0o755 if os.access(path, os.X_OK) else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, path.read_bytes())
    if not sizes:
        raise StackError([Problem(key="working directory", value=str(folder), reason="there is no file in it")])
    if content.tell() > MOST_BYTES:
        raise _too_large(folder, sizes)
    return content.getvalue()


def _too_large(folder: Path, sizes: list[tuple[int, str]]) -> StackError:
    largest = ", ".join(f"{name} ({size / 2**20:.0f} MiB)" for size, name in sorted(sizes, reverse=True)[:5])
    reason = (
        f"as a zip file it has more than the {MOST_BYTES // 2**20} MiB that Ray takes; the largest files: {largest}. "
        "Name what the command does not need in .gitignore, or keep data in a bucket"
    )
    return StackError([Problem(key="working directory", value=str(folder), reason=reason)])


def _files(folder: Path) -> Iterator[Path]:
    """Files alone: what is a link out of the folder is followed where it is a file, and left out where it is not."""
    listed = _by_git(folder)
    for path in _by_walking(folder) if listed is None else listed:
        if path.is_file() and not LEFT_OUT & set(path.relative_to(folder).parts):
            yield path


def _by_git(folder: Path) -> list[Path] | None:
    """What Git tracks, and what it neither tracks nor ignores. None where the folder is no part of a repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=GIT_S, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    return [folder / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _by_walking(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        yield from (Path(root) / name for name in files)
