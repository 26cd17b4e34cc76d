"""Which row stands in which slot of which batch. Pure, and decided before a slice is reserved.

The global batch of step s is a function of (seed, epoch, s) alone. Process p of n holds the p-th of n equal blocks of
its slots, so any number of processes sees the same global batches, and a run can start at any step at once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workloads.data.problem import JobProblem

FinalBatch = Literal["drop", "pad", "error"]
NO_ROW = -1
"""Row number of a padded slot: weight 0 in the loss."""


@dataclass(frozen=True)
class BatchPlan:
    """The batches of a run over `rows` rows, `global_batch` rows per step over all processes."""

    rows: int
    global_batch: int
    steps_per_epoch: int
    seed: int
    shuffled: bool = True

    def position(self, step: int) -> tuple[int, int]:
        """Epoch, and step within it, of the run's step (both count from 0)."""
        return divmod(step, self.steps_per_epoch)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The rows of an epoch in the order in which they are seen, (rows,)."""
        if not self.shuffled:
            return np.arange(self.rows, dtype=np.int64)
        # Philox's raw stream is fixed across numpy's versions; `Generator.permutation` is not, and a resumed run must
        # see the order that it started with.
        keys = np.random.Philox(key=np.array([self.seed % 2**64, epoch], np.uint64)).random_raw(self.rows)
        order: NDArray[np.int64] = np.argsort(keys, kind="stable").astype(np.int64)
        return order

    def global_slots(self, step: int) -> NDArray[np.int64]:
        """The row in each slot of the run's step, (global_batch,); NO_ROW in padded slots."""
        epoch, place = self.position(step)
        return self._block(self.order(epoch), place)

    def slots(self, step: int, process: int, processes: int) -> NDArray[np.int64]:
        """The rows of process `process` of `processes`, (global_batch / processes,)."""
        if self.global_batch % processes or not 0 <= process < processes:
            raise ValueError(f"no process {process} of {processes} for a batch of {self.global_batch} rows")
        share: NDArray[np.int64] = self.global_slots(step).reshape(processes, -1)[process]
        return share

    def stream(self, first: int, last: int, process: int, processes: int) -> NDArray[np.int64]:
        """The rows of a process over the run's steps first..last-1, (last - first, global_batch / processes)."""
        share = self.global_batch // processes
        rows = np.empty((last - first, share), np.int64)
        order, known = np.empty(0, np.int64), -1
        for index, step in enumerate(range(first, last)):
            epoch, place = self.position(step)
            if epoch != known:
                order, known = self.order(epoch), epoch
            rows[index] = self._block(order, place).reshape(processes, share)[process]
        return rows

    def _block(self, order: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        block = order[place * self.global_batch : (place + 1) * self.global_batch]
        missing = self.global_batch - len(block)
        return np.concatenate([block, np.full(missing, NO_ROW, np.int64)]) if missing else block


def plan_batches(rows: int, global_batch: int, final_batch: FinalBatch, devices: int, seed: int) -> BatchPlan:
    """Decide the batches of a run on a slice of `devices` devices.

    Raises:
        JobProblem: the batch does not divide over the devices, is larger than what there is, or (`error`) leaves rows
            over at an epoch's end. The message gives the numbers and the nearest batch that works.
    """
    if global_batch % devices:
        closest = max(devices, round(global_batch / devices) * devices)
        raise JobProblem(
            "data.global_batch", global_batch, f"does not divide over the slice's {devices} devices", closest
        )
    full, left = divmod(rows, global_batch)
    if final_batch == "error" and left:
        raise JobProblem(
            "data.global_batch",
            global_batch,
            f"{rows} rows make {full} batches and leave {left} rows over, and `final_batch: error` allows none"
            "; write `drop` or `pad`, or another batch",
            _nearest_divisor(rows, global_batch, devices),
        )
    steps = full + (1 if left and final_batch == "pad" else 0)
    if steps == 0:
        fitting = rows // devices * devices
        raise JobProblem(
            "data.global_batch",
            global_batch,
            f"there are only {rows} rows, so `final_batch: {final_batch}` leaves no batch at all",
            fitting or None,
        )
    return BatchPlan(rows=rows, global_batch=global_batch, steps_per_epoch=steps, seed=seed)


def plan_in_order(rows: int, global_batch: int) -> BatchPlan:
    """One pass over all rows in their own order, the last batch padded: what an evaluation reads."""
    return BatchPlan(rows, global_batch, steps_per_epoch=-(-rows // global_batch), seed=0, shuffled=False)


def _nearest_divisor(rows: int, global_batch: int, devices: int) -> int | None:
    """The batch nearest to `global_batch` that divides both over the devices and into the rows, or None."""
    fitting = [batch for batch in range(devices, rows + 1, devices) if rows % batch == 0]
    return min(fitting, key=lambda batch: (abs(batch - global_batch), batch)) if fitting else None
