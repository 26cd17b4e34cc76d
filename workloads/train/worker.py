"""What Ray Train runs on every host. Free of jax at import, since the driver imports it and must not touch a device."""

from typing import Any


def train_on_host(config: dict[str, Any]) -> None:
    """Ray Train's `train_loop_per_worker`; `config` holds the launch and the batch plan as plain values."""
    import logging

    from workloads.train.loop import run

    # Orbax tells thirty lines about every checkpoint.
    logging.getLogger("absl").setLevel(logging.WARNING)
    run(config)
