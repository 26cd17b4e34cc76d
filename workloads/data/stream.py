"""How Ray Data brings a process its slots: a table of slots, gathered from parquet, as sharded JAX arrays.

Ray's own split over workers promises no order and may lose rows, so nothing is split: each process asks for exactly
its slots, in order, starting at any step. Ray Data gathers them in its own workers while the step runs.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from workloads.data.plan import NO_ROW, BatchPlan
from workloads.data.rows import take_rows
from workloads.data.tokens import PAD

if TYPE_CHECKING:
    import jax

CHUNK_ROWS = 1 << 18
"""Rows that one Ray Data execution is asked for; a long run is a row of such executions."""
BLOCK_ROWS = 1 << 10
"""Rows of one block, the unit that one task gathers."""
TASK_CPUS = 0.25
"""A gathering task mostly waits for the file; a host whose CPUs the trainer holds must still run it."""


def gather(slots: dict[str, NDArray[Any]], path: str) -> dict[str, NDArray[Any]]:
    """Bring in the tokens of some slots. Runs in Ray Data's workers.

    Takes `row` (n,) and `slot` (n,); gives `tokens` (n, context + 1) int32, `weight` (n,) float32 which is 0 for a
    padded slot, and `slot` (n,) int32, the place in the global batch.
    """
    rows = slots["row"]
    real = rows != NO_ROW
    tokens = take_rows(path, np.where(real, rows, 0)).astype(np.int32)
    tokens[~real] = PAD
    return {"tokens": tokens, "weight": real.astype(np.float32), "slot": slots["slot"].astype(np.int32)}


def slot_tables(plan: BatchPlan, first: int, last: int, process: int, processes: int) -> Iterator[list[pa.Table]]:
    """The process's slots of steps first..last-1, a list of blocks for each chunk."""
    share = plan.global_batch // processes
    place = np.arange(share) + process * share
    steps = max(1, CHUNK_ROWS // share)
    for start in range(first, last, steps):
        rows = plan.stream(start, min(last, start + steps), process, processes)
        slots = np.broadcast_to(place, rows.shape).ravel()
        table = pa.table({"row": rows.ravel(), "slot": slots})
        yield [table.slice(offset, BLOCK_ROWS) for offset in range(0, table.num_rows, BLOCK_ROWS)]


def batches(plan: BatchPlan, path: str, first: int, last: int) -> "Iterator[dict[str, jax.Array]]":
    """The global batches of steps first..last-1. Every process of the job must iterate alike.

    Each is `tokens` (global_batch, context + 1) int32, `weight` (global_batch,) float32, `slot` (global_batch,) int32,
    divided by rows over all devices, the rows of process p of n in the order of `jax.process_index()`.
    """
    import jax
    import ray.data

    processes = jax.process_count()
    share = plan.global_batch // processes
    for blocks in slot_tables(plan, first, last, jax.process_index(), processes):
        dataset = ray.data.from_arrow(blocks).map_batches(
            partial(gather, path=path), batch_size=None, num_cpus=TASK_CPUS
        )
        dataset.context.execution_options.preserve_order = True
        dataset.context.enable_progress_bars = False
        yield from dataset.iterator().iter_jax_batches(batch_size=share, drop_last=True, prefetch_batches=2)
