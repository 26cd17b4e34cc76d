"""Edits whose outcome the room in the pool decides, beside what else the same edit takes away."""

from tests.gke.edit import set_pool
from tests.gke.service_edits import SERVICE_EDITS, ServiceEdit, both, service, without

ROOM_EDITS = (
    ServiceEdit(
        "services many: replicas 2 to 1, pools many: slices 2",
        both(service("many", replicas=1), set_pool("many", slices=2)),
        ("replace RayService many: serve, slice 1, strategy",),
        {"many": ("replaced", "none", 8)},
        up=True,
    ),
    ServiceEdit(
        "services many: one less, services spare: pool many, pools many: slices 2",
        both(
            without("services", "many"),
            service("spare", pool="many"),
            without("pools", "spare"),
            set_pool("many", slices=2),
        ),
        ("delete RayService many", "update RayService spare: cluster, serve"),
        {"many": ("removed", "gone", 8), "spare": ("stuck", "all", 8)},
    ),
)

EDITS = (*SERVICE_EDITS, *ROOM_EDITS)
"""All edits of services and jobs."""
