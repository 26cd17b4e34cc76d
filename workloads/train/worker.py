"""What Ray Train runs on every host. Free of jax at import, since the driver imports it and must not touch a device."""

from typing import Any


def train_on_host(config: dict[str, Any]) -> None:
    """Ray Train's `train_loop_per_worker`; `config` holds the launch and the batch plan as plain values."""
    import logging
    import os

    # A run is one slice. What a host's environment says about several is of another job, or of a slice that is gone,
    # and libtpu would wait for it.
    for name in [name for name in os.environ if name.startswith("MEGASCALE_")]:
        del os.environ[name]

    import ray.data  # noqa: F401  (sets its own log level when it is imported)
    from ray.train.v2._internal.execution import context

    from workloads.train.loop import run

    # The run's own lines say it shorter: Orbax alone has thirty lines for every checkpoint. Ray Train names the logger
    # of its reports after the file.
    for name in ("absl", "ray.data", context.__file__):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
    run(config)
