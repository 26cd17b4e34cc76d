"""What an image has to hold: the versions of the lock file, and those that are installed where this runs. Pure."""

import importlib.metadata
import sys

from pydantic import BaseModel, ConfigDict


class Versions(BaseModel):
    """Versions of what may not differ between what was tried and what runs. None: not asked, or not installed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: str
    """Major and minor."""
    ray: str | None = None
    jax: str | None = None
    jaxlib: str | None = None
    libtpu: str | None = None


LOCKED = Versions(python="3.11", ray="2.60.0", jax="0.10.2", jaxlib="0.10.2", libtpu="0.0.42.1")
"""Those of uv.lock, which is no part of the package; libtpu's is the one that this jax asks for (its extra `tpu`).
tests/delivery/test_image.py holds them together, and with the Dockerfile.
"""


def installed() -> Versions:
    """What is installed for this interpreter. Nothing is imported: a driver that imports jax takes its host's chips."""
    return Versions(
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        **{name: _version(name) for name in Versions.model_fields if name != "python"},
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
