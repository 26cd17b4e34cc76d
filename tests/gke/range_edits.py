"""Edits of services whose replicas come and go."""

from copy import deepcopy
from typing import Any

from tests.gke.edit import PLATFORM, Config, set_platform, set_pool
from tests.gke.service_edits import IMAGE, MODEL, ServiceEdit, both, service

POOLS: list[dict[str, Any]] = [
    {"name": "tight", "generation": "v6e", "topology": "2x2", "slices": {"min": 1, "max": 4}},
    {"name": "roomy", "generation": "v6e", "topology": "2x2", "slices": {"min": 1, "max": 8}},
    {"name": "plain", "generation": "v6e", "topology": "2x2", "slices": {"min": 2, "max": 6}},
]
SERVICES: list[dict[str, Any]] = [
    {"name": "tight", "pool": "tight", "model": MODEL, "replicas": {"min": 2, "max": 3}},
    {"name": "roomy", "pool": "roomy", "model": MODEL, "replicas": {"min": 1, "max": 3}},
    {"name": "plain", "pool": "plain", "model": MODEL, "replicas": 2},
]


def start() -> Config:
    """A range in a pool that holds no second cluster, one in a pool that does, and a number."""
    parts = {"platform": PLATFORM, "pools": POOLS, "services": SERVICES}
    return deepcopy({f"tpu-ray:{key}": value for key, value in parts.items()})


RANGE_EDITS = (
    ServiceEdit(
        "services roomy: replicas.min 1 to 2",
        service("roomy", replicas={"min": 2, "max": 3}),
        ("update RayService roomy: serve",),
        {"roomy": ("more slices", "all", 12)},
    ),
    ServiceEdit(
        "services tight: replicas.min 2 to 1",
        service("tight", replicas={"min": 1, "max": 3}),
        ("update RayService tight: serve",),
        {"tight": ("other number", "all", 12)},
    ),
    ServiceEdit(
        "services tight: replicas.max 3 to 4",
        service("tight", replicas={"min": 2, "max": 4}),
        ("update RayService tight: serve, slice 3",),
        {"tight": ("other number", "all", 16)},
    ),
    ServiceEdit(
        "services roomy: replicas.max 3 to 4",
        service("roomy", replicas={"min": 1, "max": 4}),
        ("update RayService roomy: serve, slice 3",),
        {"roomy": ("other number", "all", 16)},
    ),
    ServiceEdit(
        "services roomy: replicas.max 3 to 5",
        service("roomy", replicas={"min": 1, "max": 5}),
        ("update RayService roomy: serve, slice 3, slice 4, strategy",),
        {"roomy": ("other number", "all", 20)},
    ),
    ServiceEdit(
        "services roomy: replicas.max 3 to 2",
        service("roomy", replicas={"min": 1, "max": 2}),
        ("update RayService roomy: serve, slice 2",),
        {"roomy": ("beside", "all", 20)},
    ),
    ServiceEdit(
        "services tight: replicas.min 2 to 1, replicas.max 3 to 2, pools tight: slices.max 3",
        both(service("tight", replicas={"min": 1, "max": 2}), set_pool("tight", slices={"min": 1, "max": 3})),
        ("replace RayService tight: serve, slice 2",),
        {"tight": ("replaced", "none", 12)},
    ),
    ServiceEdit(
        "services roomy: replicas.idle_s",
        service("roomy", replicas={"min": 1, "max": 3, "idle_s": 600}),
        ("update RayService roomy: cluster, serve",),
        {"roomy": ("beside", "all", 24)},
    ),
    ServiceEdit(
        "services tight: replicas.idle_s",
        service("tight", replicas={"min": 2, "max": 3, "idle_s": 600}),
        ("replace RayService tight: cluster, serve",),
        {"tight": ("replaced", "none", 12)},
    ),
    ServiceEdit(
        "services roomy: replicas.idle_s, the default written out", service("roomy", replicas={"max": 3, "idle_s": 300})
    ),
    ServiceEdit(
        "services plain: replicas 2 to {min: 1, max: 3}",
        service("plain", replicas={"min": 1, "max": 3}),
        ("update RayService plain: cluster, serve",),
        {"plain": ("beside", "all", 20)},
    ),
    ServiceEdit("services plain: replicas 2 to {min: 2, max: 2}", service("plain", replicas={"min": 2, "max": 2})),
    ServiceEdit(
        "services roomy: replicas {min: 1, max: 3} to 3",
        service("roomy", replicas=3),
        ("update RayService roomy: cluster, serve",),
        {"roomy": ("beside", "all", 24)},
    ),
    ServiceEdit(
        "services tight: replicas {min: 2, max: 3} to 3",
        service("tight", replicas=3),
        ("replace RayService tight: cluster, serve",),
        {"tight": ("replaced", "none", 12)},
    ),
    ServiceEdit(
        "services roomy: engine.max_slots",
        service("roomy", engine={"max_slots": 2}),
        ("update RayService roomy: serve",),
        {"roomy": ("in place", "late", 12)},
    ),
    ServiceEdit(
        "services tight: engine.max_slots",
        service("tight", engine={"max_slots": 2}),
        ("update RayService tight: serve",),
        {"tight": ("in place", "all", 12)},
    ),
    ServiceEdit(
        "platform: image",
        set_platform(image=IMAGE),
        (
            "replace RayService tight: cluster",
            "update RayService plain: cluster",
            "update RayService roomy: cluster",
        ),
        {"tight": ("replaced", "none", 12), "roomy": ("beside", "all", 24), "plain": ("beside", "all", 16)},
    ),
)
