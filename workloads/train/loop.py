"""The training loop of one host's process. Every process runs it in step with the others."""

import time
from typing import Any

import jax
import numpy as np
import ray.train
from jax.experimental import multihost_utils

from workloads.data.batch_hash import hash_text
from workloads.data.plan import BatchPlan, plan_in_order
from workloads.data.prepare import HELD_OUT_FILE, TRAIN_FILE, prepared_in
from workloads.data.stream import batches
from workloads.spec.launch import JobLaunch
from workloads.train import checkpoint
from workloads.train.export import export
from workloads.train.folder import RunFolder
from workloads.train.hosts import check_devices, check_hosts, gather_hosts
from workloads.train.metrics import MetricsLog
from workloads.train.model import Trainer, TrainState, job_mesh


class LostFolder(RuntimeError):
    """A host does not see the run's folder."""


def run(config: dict[str, Any]) -> None:
    """Train from the newest complete checkpoint to the job's last step, then evaluate and export.

    Raises:
        NotOneSlice: the processes are not the hosts of one slice.
        LostFolder: the storage is not shared by all hosts.
    """
    launch = JobLaunch.model_validate(config["launch"])
    plan = BatchPlan(**config["plan"])
    folder = RunFolder(launch)
    check_devices(launch.slice)
    hosts = gather_hosts()
    check_hosts(hosts, launch.slice)
    if jax.process_index() == 0:
        where = ", ".join(f"process {n} on worker {host.worker_id} (pid {host.pid})" for n, host in enumerate(hosts))
        print(f"on slice {hosts[0].slice_name or 'without name'}: {where}", flush=True)
    if not (folder.data / TRAIN_FILE).exists():
        raise LostFolder(f"{folder.data} is not there on this host; `storage` must be a folder that all hosts share")
    Run(launch, plan, folder).go()


class Run:
    """One try of a run, from its last checkpoint to its export."""

    def __init__(self, launch: JobLaunch, plan: BatchPlan, folder: RunFolder) -> None:
        self.launch, self.job, self.plan, self.folder = launch, launch.job, plan, folder
        self.prepared = prepared_in(folder.data)
        self.trainer = Trainer(self.job, job_mesh(self.job))
        self.leads = jax.process_index() == 0

    def say(self, text: str) -> None:
        """A progress line, from one process."""
        if self.leads:
            print(text, flush=True)

    def go(self) -> None:
        first, state = self.start()
        state = self.train(first, state)
        self.finish(state)

    def start(self) -> tuple[int, TrainState]:
        """The first step to take, and the state before it."""
        found = checkpoint.newest_complete(self.folder.checkpoints, self.say)
        # All processes must restore the same one, also when a folder changes under their eyes.
        steps = int(multihost_utils.broadcast_one_to_all(np.int32(-1 if found is None else found)))
        mesh = dict(self.trainer.mesh.shape)
        if steps < 0:
            self.say(f"starting from seed {self.job.seed}, {self.trainer.config.parameters} weights, mesh {mesh}")
            return 0, self.trainer.init()
        saved = checkpoint.restore(self.folder.checkpoints, steps, self._saved(self.trainer.abstract(), 0))
        if saved["position"] != self._position(steps):
            raise ValueError(f"checkpoint {steps} holds {saved['position']}, the run expects {self._position(steps)}")
        self.say(f"resumed from the checkpoint of step {steps}, mesh {mesh}")
        return steps, TrainState(saved["params"], saved["opt_state"])

    def train(self, first: int, state: TrainState) -> TrainState:
        """Take the steps first..last-1 with a checkpoint at every `checkpoint_every` and at the end."""
        log = MetricsLog(self.folder.metrics, first) if self.leads else None
        step_fn = self.trainer.train_step()
        path, last = str(self.folder.data / TRAIN_FILE), self.job.steps
        began = time.monotonic()
        for step, batch in enumerate(batches(self.plan, path, first, last), start=first):
            state, seen = step_fn(state, self.trainer.place(batch))
            values = self._values(step, jax.device_get(seen), time.monotonic() - began)
            began = time.monotonic()
            if log is not None:
                log.add(values)
            done = step + 1
            if done % max(1, min(10, last // 20)) == 0 or done == last or step == first:
                self.say(
                    f"step {done}/{last} epoch {values['epoch']} loss {values['loss']:.4f} "
                    f"{values['tokens_per_s']:.0f} tokens/s"
                )
            if done % self.job.checkpoint_every == 0 or done == last:
                self.save(done, state, values, log)
                began = time.monotonic()
        return state

    def save(self, steps: int, state: TrainState, values: dict[str, Any], log: MetricsLog | None) -> None:
        """Write a checkpoint and tell Ray Train, once it is complete on all hosts."""
        if log is not None:
            log.flush()
        path = checkpoint.save(
            self.folder.checkpoints, steps, self._saved(state, steps), keep=self.job.keep_checkpoints
        )
        context = ray.train.get_context()
        reported = None
        if context.get_world_rank() == 0:
            storage = context.get_storage()
            inside = f"{storage.experiment_fs_path}/{path.relative_to(self.folder.root)}"
            reported = ray.train.Checkpoint(inside, storage.storage_filesystem)
        ray.train.report(
            {"step": steps, "loss": values["loss"]},
            checkpoint=reported,
            checkpoint_upload_mode=ray.train.CheckpointUploadMode.NO_UPLOAD,
        )
        self.say(f"checkpoint of step {steps} is complete: {path}")

    def finish(self, state: TrainState) -> None:
        """Loss of the held-out rows, then the export."""
        plan = plan_in_order(self.prepared.held_out_rows, self.job.data.global_batch)
        step_fn = self.trainer.eval_step()
        total = weight = 0.0
        path = str(self.folder.data / HELD_OUT_FILE)
        for batch in batches(plan, path, 0, plan.steps_per_epoch):
            part, count = jax.device_get(step_fn(state.params, self.trainer.place(batch)))
            total, weight = total + float(part), weight + float(count)
        loss, unigram = total / weight, self.prepared.unigram_loss
        self.say(f"held-out loss {loss:.4f} over {weight:.0f} rows; a unigram model of the same text has {unigram:.4f}")
        export(
            self.folder.export,
            self.trainer.config,
            state.params,
            {"step": self.job.steps, "run": self.launch.run_name, "held_out_loss": loss, "unigram_loss": unigram},
        )
        self.say(f"exported to {self.folder.export}")

    def _saved(self, state: TrainState, steps: int) -> dict[str, Any]:
        """The tree that a checkpoint holds."""
        return {"params": state.params, "opt_state": state.opt_state, "position": self._position(steps)}

    def _position(self, steps: int) -> dict[str, int]:
        """Where in the data the run stands after `steps` steps, and the two seeds that decide what comes next."""
        epoch, place = self.plan.position(steps)
        seeds = {"seed": self.job.seed, "data_seed": self.plan.seed}
        return {"step": steps, "epoch": epoch, "step_in_epoch": place, "rows": self.plan.rows, **seeds}

    def _values(self, step: int, seen: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The line of one step in metrics.jsonl."""
        epoch, _ = self.plan.position(step)
        tokens = float(seen["rows"]) * self.job.model.context
        return {
            "step": step,
            "epoch": epoch,
            "loss": float(seen["loss"]),
            "tokens_per_s": round(tokens / seconds, 1),
            "batch_hash": hash_text(seen["hash"]),
        }
