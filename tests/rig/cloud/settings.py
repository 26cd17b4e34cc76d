"""What a test says about the cloud that it wants, in `settings.json` of the double's folder."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

FILE = "settings.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quota(_Frozen):
    """Chips that the project may have in a region; preemptible ones are counted apart."""

    generation: str
    region: str
    chips: int
    preemptible: int = 0


class Stock(_Frozen):
    """Machines of one type that a zone has left for everybody; a type that is not named has no end."""

    zone: str
    machine_type: str
    hosts: int


class Reservation(_Frozen):
    """Reserved machines; `project` where another one owns and shares them."""

    name: str
    zone: str
    machine_type: str
    hosts: int
    project: str | None = None


class Existing(_Frozen):
    """Something that was there before the program: a resource type's token and its inputs."""

    token: str
    inputs: Mapping[str, JsonValue]


class Settings(_Frozen):
    """The cloud at the beginning of a test.

    Attributes:
        seconds_per_minute: real seconds in which a minute of Google's goes by; 0: operations end at once.
        existing: made once, in this order, without asking whether Google would.
        quotas: where a generation and region are not named there is no limit.
        enabled_apis: None: all of them.
        default_service_account: whether the project still has Compute Engine's own account.
        identity_pool: whether a cluster with Workload Identity was there once; the project's pool stays from then on.
        default_network: whether the project still has the network `default`.
        buckets: a folder in which each bucket is a folder with its objects; None: of objects only the names are kept.
        machines: whether emulated machines run the nodes, whose kubelets register them; else the cloud makes the node
            objects itself.
        channels: newest version of each release channel.
        versions: all versions that can be had, newest first.
    """

    project: str = "tpu-ray-test"
    number: str = "415104041262"
    region: str = "us-east5"
    zone: str = "us-east5-b"
    seconds_per_minute: float = 0.0
    quotas: tuple[Quota, ...] = ()
    stock: tuple[Stock, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    existing: tuple[Existing, ...] = ()
    enabled_apis: tuple[str, ...] | None = None
    default_service_account: bool = True
    default_network: bool = True
    identity_pool: bool = False
    buckets: str | None = None
    machines: bool = False
    channels: Mapping[str, str] = {
        "RAPID": "1.35.3-gke.1737000",
        "REGULAR": "1.34.4-gke.1193000",
        "STABLE": "1.33.5-gke.2469000",
        "EXTENDED": "1.32.9-gke.1726000",
    }
    versions: tuple[str, ...] = (
        "1.35.3-gke.1737000",
        "1.34.4-gke.1193000",
        "1.34.0-gke.2201000",
        "1.33.5-gke.2469000",
        "1.33.5-gke.1080000",
        "1.32.9-gke.1726000",
        "1.29.15-gke.1523000",
    )


def write_settings(folder: Path, settings: Settings) -> None:
    """Put the settings where the double reads them; calls from then on go by them."""
    write_whole(folder / FILE, settings.model_dump_json(indent=1))


def read_settings(folder: Path) -> Settings:
    """The folder's settings, or the default ones."""
    path = folder / FILE
    return Settings.model_validate_json(path.read_bytes()) if path.exists() else Settings()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
