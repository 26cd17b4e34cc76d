"""What docs/daily.md submits: every host says which chips it has, and they add something up together."""

import os

import jax

jax.distributed.initialize(num_processes=int(os.environ["TPU_RAY_HOSTS"]), process_id=int(os.environ["TPU_RAY_HOST"]))
print(f"{jax.local_device_count()} of {jax.device_count()} devices are mine", flush=True)
