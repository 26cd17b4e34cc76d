"""GKE: node pools for the slices, RayService and RayJob for what runs on them."""

import pulumi

from infra.stack import StackSpec


def deploy(stack_name: str, stack: StackSpec) -> None:
    """Not built yet: refuses, and says what works today.

    Raises:
        pulumi.RunError: always.
    """
    raise pulumi.RunError(
        f"tpu-ray:platform.kind: gke\n    stack {stack_name} cannot be brought up yet: the gke platform only renders"
        f" manifests today\n    next: tpu-ray render -s {stack_name} -o DIR"
    )
