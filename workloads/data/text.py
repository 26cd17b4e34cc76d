"""Where a job's text comes from: bundled with the package, a .txt file, or the column `text` of a parquet file."""

import gzip
from importlib import resources
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from workloads.data.problem import JobProblem
from workloads.spec.nearest import nearest

BUNDLED = {"python-reference": "python-reference.txt.gz"}
"""Texts of this package; licences in texts/NOTICE."""

PAGE_BREAK = "\f"
"""Separates the documents of a .txt file."""


def load_documents(source: str) -> list[str]:
    """The documents of a source, in order, none empty.

    Raises:
        JobProblem: there is no such bundled text or file, it is of another kind, or it holds no text.
    """
    kind, _, name = source.partition(":")
    if kind == "bundled":
        return _bundled(source, name)
    path = Path(source)
    if path.suffix not in (".txt", ".parquet"):
        raise JobProblem("data.source", source, "expected `bundled:<name>`, or a path to a .txt or .parquet file")
    if not path.is_file():
        raise JobProblem("data.source", source, "there is no such file (seen from where the job's driver runs)")
    documents = _text_file(source, path) if path.suffix == ".txt" else _parquet_file(source, path)
    if not documents:
        raise JobProblem("data.source", source, "the file holds no text")
    return documents


def _bundled(source: str, name: str) -> list[str]:
    if name not in BUNDLED:
        closest = nearest(name, list(BUNDLED))
        known = ", ".join(f"bundled:{text}" for text in BUNDLED)
        raise JobProblem(
            "data.source", source, f"there is no such text; bundled are {known}", closest and f"bundled:{closest}"
        )
    packed = resources.files("workloads.data").joinpath("texts", BUNDLED[name]).read_bytes()
    return _split(gzip.decompress(packed).decode("utf-8"))


def _text_file(source: str, path: Path) -> list[str]:
    try:
        return _split(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise JobProblem("data.source", source, f"the file is not UTF-8 text (byte {error.start})") from None


def _parquet_file(source: str, path: Path) -> list[str]:
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise JobProblem("data.source", source, f"the file is not parquet ({error})") from None
    if "text" not in table.column_names:
        raise JobProblem("data.source", source, f"it has no column `text`; its columns are {table.column_names}")
    column = table.column("text")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        column, kind = _decoded(source, column), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise JobProblem("data.source", source, f"its column `text` holds {column.type}, expected string")
    return [text for text in column.to_pylist() if text]


def _decoded(source: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as the text that some writers mean by them."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        raise JobProblem("data.source", source, "its column `text` holds bytes that are not UTF-8") from None


def _split(text: str) -> list[str]:
    return [document for document in text.split(PAGE_BREAK) if document]
