"""The driver of a run: checks the job, prepares its data, then lets Ray Train take a slice. Never imports jax."""

import math
import os
import threading
import time
from dataclasses import asdict
from typing import Any

from workloads.data.plan import BatchPlan, plan_batches
from workloads.data.prepare import Prepared, prepare
from workloads.data.problem import JobProblem
from workloads.spec.launch import JobLaunch
from workloads.spec.pools import pool_resource
from workloads.train.folder import RunFolder
from workloads.versions import WrongVersions, check_versions

OK, FAILED, BAD_JOB = 0, 1, 2
"""Exit codes: the run is finished; it failed; the job can never work as written."""

TRY_OVERHEAD_S = 1.5
"""What Ray Train adds to each try to reserve a slice."""


class RunFailed(Exception):
    """The run ended without a model. The text says why and what to do."""


def run(launch: JobLaunch) -> int:
    """Run the job to its export, or explain why not. Gives the exit code."""
    began = time.monotonic()
    folder = RunFolder(launch)
    try:
        check_versions(launch.versions)
        facts = folder.exported()
        if facts is not None:
            say(f"run {launch.run_name} is already finished at step {facts['step']}: {folder.export}")
            return OK
        check_model(launch)
        folder.check_claim()
        prepared, plan = plan_run(launch, folder)
        folder.claim()
        describe(launch, prepared, plan)
    except JobProblem as problem:
        say(f"error: {problem}")
        return BAD_JOB
    except WrongVersions as wrong:
        say(f"error: {wrong}")
        return FAILED
    except OSError as error:
        say(f"error: the run's folder {folder.root} cannot be used: {error.strerror or error}; see `storage`")
        return FAILED
    end_after(launch, began)
    try:
        fit(launch, plan, folder)
    except RunFailed as failure:
        say(f"error: {failure}")
        return FAILED
    facts = folder.exported()
    if facts is None:
        say(f"error: the training loop ended without an export in {folder.export}")
        return FAILED
    say(
        f"run {launch.run_name} finished: step {facts['step']}, held-out loss {facts['held_out_loss']:.4f} "
        f"(unigram {facts['unigram_loss']:.4f}), model in {folder.export}"
    )
    return OK


def say(text: str) -> None:
    print(text, flush=True)


def check_model(launch: JobLaunch) -> None:
    """Raise JobProblem for a model or mesh that cannot be built on the slice."""
    model, mesh, devices = launch.job.model, launch.job.mesh, launch.slice.devices
    if model.width % model.heads or model.width // model.heads % 2:
        even = 2 * model.heads
        closest = max(1, round(model.width / even)) * even
        raise JobProblem("model.width", model.width, f"is not {model.heads} heads of an even size", closest)
    if model.heads % model.kv_heads:
        divisors = [n for n in range(1, model.heads + 1) if model.heads % n == 0]
        closest = min(divisors, key=lambda n: abs(n - model.kv_heads))
        raise JobProblem("model.kv_heads", model.kv_heads, f"does not divide the {model.heads} heads", closest)
    if devices % mesh.tensor:
        divisors = [n for n in range(1, devices + 1) if devices % n == 0]
        closest = min(divisors, key=lambda n: abs(n - mesh.tensor))
        raise JobProblem("mesh.tensor", mesh.tensor, f"does not divide the slice's {devices} devices", closest)
    if mesh.data is not None and mesh.data * mesh.tensor != devices:
        raise JobProblem(
            "mesh.data",
            mesh.data,
            f"data {mesh.data} x tensor {mesh.tensor} is not the slice's {devices} devices",
            devices // mesh.tensor,
        )


def plan_run(launch: JobLaunch, folder: RunFolder) -> tuple[Prepared, BatchPlan]:
    """Prepare the data and decide the batches. Raises JobProblem."""
    data = launch.job.data
    prepared = prepare(launch.job, str(folder.data))
    plan = plan_batches(prepared.train_rows, data.global_batch, data.final_batch, launch.slice.devices, data.seed)
    return prepared, plan


def describe(launch: JobLaunch, prepared: Prepared, plan: BatchPlan) -> None:
    left = plan.rows - plan.steps_per_epoch * plan.global_batch
    rest = f", {left} rows dropped" if left > 0 else f", {-left} rows padded" if left < 0 else ""
    say(
        f"run {launch.run_name}: {prepared.train_rows} rows of {launch.job.model.context} tokens to train on, "
        f"{prepared.held_out_rows} held out; {plan.steps_per_epoch} steps of {plan.global_batch} rows an epoch{rest}; "
        f"{launch.job.steps} steps in all"
    )


def end_after(launch: JobLaunch, began: float) -> None:
    """End this process, and with it the run's workers, when `timeout_s` is over."""

    def end() -> None:
        say(
            f"error: run {launch.run_name} took longer than timeout_s: {launch.job.timeout_s}; its checkpoints are in "
            f"{RunFolder(launch).checkpoints}: submit it again to go on from there, with a larger timeout_s"
        )
        os._exit(FAILED)

    timer = threading.Timer(max(0.0, launch.job.timeout_s - (time.monotonic() - began)), end)
    timer.daemon = True
    timer.start()


def reserve_tries(reserve_timeout_s: float) -> tuple[float, int]:
    """Seconds of one try to reserve the slice, and how many tries fit into the time that the job waits.

    Several short tries, not one long: Ray pins a try to the slice that it chose first, and a slice that lost a host
    or that somebody else holds can be chosen.
    """
    one_s = min(30.0, max(2.0, reserve_timeout_s / 8))
    return one_s, max(1, math.floor(reserve_timeout_s / (one_s + TRY_OVERHEAD_S)))


class NoSlice(Exception):
    """No slice came within one wait. The text is Ray Train's own."""


def fit(launch: JobLaunch, plan: BatchPlan, folder: RunFolder) -> None:
    """Reserve the slice, train, release it; after a lost slice, once more. Raises RunFailed.

    Ray Train counts all tries of a run to get a slice together. So a run that has taken steps since its last wait gets
    a new one of `reserve_timeout_s`, and maybe another slice: bounded by `timeout_s` alone, as preemptions are.
    """
    import ray

    connect(ray)
    try:
        while True:
            before = folder.trace()
            try:
                return fit_once(launch, plan, folder)
            except NoSlice as none:
                if folder.trace() == before:
                    raise no_slice(launch, f" (Ray Train: {none})") from none
                say(f"run {launch.run_name} has lost its slice; it waits for one again, to go on where it was")
    finally:
        ray.shutdown()


def fit_once(launch: JobLaunch, plan: BatchPlan, folder: RunFolder) -> None:
    """Train on one slice, which may come back while Ray Train waits. Raises RunFailed; NoSlice where none came."""
    job, shape = launch.job, launch.slice
    one_s, tries = reserve_tries(job.reserve_timeout_s)
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = str(one_s)
    # Otherwise every printed line reaches the driver twice: as output and as a log record.
    os.environ["RAY_TRAIN_ENABLE_PRINT_PATCH"] = "0"

    import ray.train
    from ray.train.v2.api.config import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.jax import JaxTrainer

    from workloads.train.found import found_text, wanted_text
    from workloads.train.worker import train_on_host

    say(f"asking for {wanted_text(launch)}; here is: {found_text(launch)}")
    resources = worker_resources(launch)
    folder.forget_reports()
    trainer = JaxTrainer(
        train_on_host,
        train_loop_config={"launch": launch.model_dump(mode="json"), "plan": asdict(plan)},
        scaling_config=ScalingConfig(
            use_tpu=True,
            num_workers=shape.hosts,
            topology=shape.topology,
            accelerator_type=shape.ray_accelerator_type,
            resources_per_worker=resources,
        ),
        run_config=RunConfig(
            name=launch.run_name,
            storage_path=launch.storage,
            failure_config=FailureConfig(max_failures=job.max_failures, controller_failure_limit=tries - 1),
        ),
    )
    try:
        trainer.fit()
    except ray.train.ControllerError as error:
        raise NoSlice(last_line(error).split(". ")[0]) from error
    except ray.train.TrainingFailedError as error:
        raise RunFailed(
            f"the training loop failed more often than max_failures: {job.max_failures}: {last_line(error)}"
        ) from error


def connect(ray: Any) -> None:
    """Join the cluster that this process was started in. Raises RunFailed when there is none."""
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"))
    except ConnectionError as error:
        raise RunFailed(f"there is no Ray cluster to run on ({last_line(error)}); submit the job to one") from error


def worker_resources(launch: JobLaunch) -> dict[str, float]:
    """What one host's worker takes: all chips, and a piece of the pool, so that no other pool's host is taken.

    Raises RunFailed when the slice must be chosen here and none is free in time.
    """
    from ray.util.tpu import get_tpu_worker_resources

    from workloads.train.found import free_slice

    shape = launch.slice
    taken: dict[str, float] = {"CPU": 1, "TPU": shape.chips_per_host, pool_resource(launch.job.pool): 1}
    in_rays_eyes, _ = get_tpu_worker_resources(shape.topology, shape.ray_accelerator_type)
    if in_rays_eyes == shape.hosts:
        return taken
    # Ray takes v6e 2x4 for one host of 8 chips. Where it is two of 4, nothing would keep them on one slice, so it is
    # named: every host carries a resource with its slice's name.
    end = time.monotonic() + launch.job.reserve_timeout_s
    while time.monotonic() < end:
        name = free_slice(launch)
        if name is not None:
            return {**taken, name: 0.001}
        time.sleep(1)
    raise no_slice(launch, "")


def no_slice(launch: JobLaunch, cause: str) -> RunFailed:
    """The error of a run whose slice did not come in time."""
    from workloads.train.found import found_text, wanted_text

    return RunFailed(
        f"no slice within reserve_timeout_s: {launch.job.reserve_timeout_s}: wanted {wanted_text(launch)}; found "
        f"{found_text(launch)}; free a slice of the pool, add one to it, or wait longer{cause}"
    )


def last_line(error: BaseException) -> str:
    """The most telling line of one of Ray's long errors."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
