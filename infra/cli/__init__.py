"""The command `tpu-ray`.

Each command imports what it needs when it runs: `tpu-ray slices` loads neither pulumi, ray nor jax.
"""

from infra.cli.commands import main

__all__ = ["main"]
