"""The `local` platform: slices that look to Ray like TPU hosts, on this machine."""

from infra.platforms.local.deploy import deploy

__all__ = ["deploy"]
