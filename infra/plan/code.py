"""The code that a service or a run needs, as one archive named after its content. Pure: reads files, starts nothing.

What an entry module imports is found in the source, without running it: every `import` in it, at any depth, and every
text that names a module (`"workloads.serve.jax_engine:JaxEngine"`). So an edit of serving code leaves the archive of
training as it was, and the other way round.
"""

import ast
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import workloads.spec

ROOT = Path(workloads.spec.__file__).parents[2]
"""The folder that holds the package `workloads`."""

SERVE_ENTRY = "workloads.serve.app"
TRAIN_ENTRY = "workloads.train.__main__"

TOP = "code"
"""Ray takes the top folder of a zip away where there is only one (packaging.py, unzip_package), so there is one."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(:[A-Za-z_]\w*)?")


@dataclass(frozen=True)
class Archive:
    """Files by their path below the package's root; equal files make equal bytes, on every machine."""

    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """SHA-256 of the paths and the contents, in hexadecimal."""
        whole = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            whole.update(f"{name}\0{len(content)}\0".encode())
            whole.update(content)
        return whole.hexdigest()

    @property
    def name(self) -> str:
        """`<digest>.zip`."""
        return f"{self.digest}.zip"

    def zipped(self) -> bytes:
        """The zip: sorted, of one date, and stored, because what compresses differs from machine to machine."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, content in sorted(self.files.items()):
                entry = zipfile.ZipInfo(f"{TOP}/{name}", _EPOCH)
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                archive.writestr(entry, content)
        return buffer.getvalue()


def archive_of(entry: str, root: Path = ROOT, own: Path | None = None) -> Archive:
    """The archive of one entry module.

    Args:
        entry: its full name, e.g. `workloads.serve.app`.
        root: the folder that holds `workloads`.
        own: a folder of the user's files; all of it goes along, since what of it a command reads is not known.

    Raises:
        ModuleNotFoundError: there is no such module below `root`.
    """
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in closure([entry], root)}
    if own is not None:
        files |= {path.relative_to(own).as_posix(): path.read_bytes() for path in _own_files(own)}
    return Archive(files)


def closure(entries: Iterable[str], root: Path = ROOT) -> list[Path]:
    """The files that these modules import below `root`, with the data that those name, sorted."""
    waiting, seen = list(entries), set[Path]()
    for entry in waiting:
        if _file(entry, root) is None:
            raise ModuleNotFoundError(f"there is no module {entry} in {root}")
    while waiting:
        name = waiting.pop()
        parent = name.rpartition(".")[0]
        if parent:
            waiting.append(parent)
        path = _file(name, root)
        if path is None or path in seen:
            continue
        seen.add(path)
        tree = ast.parse(path.read_bytes(), str(path))
        package = name if path.name == "__init__.py" else parent
        waiting += _imported(tree, package)
        seen |= _data(tree, path.parent)
    return sorted(seen)


def _file(name: str, root: Path) -> Path | None:
    """The module's file, or None where there is none below `root`."""
    base = root.joinpath(*name.split("."))
    package = base / "__init__.py"
    module = base.with_suffix(".py")
    return package if package.is_file() else module if module.is_file() else None


def _imported(tree: ast.AST, package: str) -> Iterable[str]:
    """Names of all that may be a module: what stands behind `from a import`, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            yield node.value.partition(":")[0]


def _data(tree: ast.AST, folder: Path) -> set[Path]:
    """Files beside a module that are no code, and those in a folder beside it, where the module names it."""
    found: set[Path] = set()
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for path in folder.iterdir():
        if path.name not in named or path.suffix == ".py":
            continue
        if path.is_file():
            found.add(path)
        elif not (path / "__init__.py").exists():
            found |= {inner for inner in path.rglob("*") if inner.is_file()}
    return found


def _own_files(folder: Path) -> Iterable[Path]:
    """All of a user's files but caches and what is hidden, a virtual environment or a repository's store among it."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path
