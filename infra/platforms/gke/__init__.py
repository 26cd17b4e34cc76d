"""GKE: node pools for the slices, RayService and RayJob for what runs on them."""

from infra.platforms.gke.deploy import deploy

__all__ = ["deploy"]
