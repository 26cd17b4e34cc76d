"""Rows of tokens: cut from a text, split into train and held-out, written as parquet, read back by number."""

from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from etils import epath  # type: ignore[import-untyped]
from numpy.typing import NDArray

from workloads.data.tokens import VOCABULARY

Tokens = NDArray[np.uint16]

ROW_GROUP_BYTES = 1 << 20
"""Size of a parquet row group: what one look-up reads at least."""


def cut_rows(tokens: Tokens, context: int) -> Tokens:
    """Rows of context + 1 tokens, (rows, context + 1).

    Neighbours share one token, so every token but the first is predicted exactly once. The tail that does not fill a
    row is left out.
    """
    count = (len(tokens) - 1) // context
    starts = np.arange(max(count, 0)) * context
    rows: Tokens = tokens[starts[:, None] + np.arange(context + 1)]
    return rows


def split_rows(rows: Tokens, held_out: float) -> tuple[Tokens, Tokens]:
    """Train rows and held-out rows. Held-out rows lie evenly over the text, whatever the seed."""
    marks = np.floor(np.arange(len(rows) + 1) * held_out)
    kept_out = np.diff(marks) > 0
    return rows[~kept_out], rows[kept_out]


def unigram_loss(train: Tokens, held_out: Tokens) -> float:
    """Loss, in nats per token, of a model that knows only how often each token occurs in the training rows.

    Counts carry one extra for each token (Laplace), so an unseen one has a finite loss.
    """
    counts = np.bincount(train[:, 1:].ravel(), minlength=VOCABULARY).astype(np.float64) + 1
    losses = np.log(counts.sum()) - np.log(counts)
    return float(losses[held_out[:, 1:]].mean())


def write_rows(path: epath.Path, rows: Tokens) -> None:
    """Write rows as parquet, one column `tokens` of fixed-size lists."""
    width = rows.shape[1]
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), width)
    table = pa.table({"tokens": values})
    with path.open("wb") as file:
        pq.write_table(table, file, row_group_size=max(1, ROW_GROUP_BYTES // (2 * width)), compression="zstd")


@lru_cache(maxsize=8)
def _open(path: str) -> tuple[pq.ParquetFile, NDArray[np.int64]]:
    """The file, and the number of the first row of each row group, with the total at the end."""
    file = pq.ParquetFile(epath.Path(path).open("rb"))
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    return file, np.cumsum([0, *sizes])


@lru_cache(maxsize=64)
def _group(path: str, group: int) -> Tokens:
    column = _open(path)[0].read_row_group(group, columns=["tokens"]).column("tokens").combine_chunks()
    values = column.flatten().to_numpy().reshape(len(column), -1)
    return cast("Tokens", values)


def take_rows(path: str, wanted: NDArray[np.int64]) -> Tokens:
    """The rows of these numbers, (wanted, context + 1). Reads only the row groups that hold one of them."""
    _, starts = _open(path)
    groups = np.searchsorted(starts, wanted, side="right") - 1
    taken: Tokens | None = None
    for group in np.unique(groups):
        rows = _group(path, int(group))
        if taken is None:
            taken = np.empty((len(wanted), rows.shape[1]), np.uint16)
        here = groups == group
        taken[here] = rows[wanted[here] - starts[group]]
    if taken is None:
        raise ValueError("no rows were asked for")
    return taken
