"""What an application of the user's own (engine `app`) knows of its slices.

In the function that makes the application, or anywhere in its processes:

    from workloads.declared import declared_slices
    from workloads.reserve import reserve_slice

    mine = declared_slices()
    held = reserve_slice(mine.slice, mine.pool, timeout_s=300)
"""

import os

from workloads.spec.launch import SLICES_VARIABLE, DeclaredSlices


def declared_slices() -> DeclaredSlices:
    """The slices of this application's service.

    Raises:
        RuntimeError: this process is no part of such an application.
    """
    value = os.environ.get(SLICES_VARIABLE)
    if value is None:
        raise RuntimeError(f"{SLICES_VARIABLE} is not set: this is no process of a service with `engine: app`")
    return DeclaredSlices.model_validate_json(value)
