"""The provider's own configuration."""

import json
import os
from dataclasses import dataclass, field

from tests.rig.gcp.values import Object, Unknown, Value, plain_object

PROJECT_VARIABLES = ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
REGION_VARIABLES = ("GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION")
ZONE_VARIABLES = ("GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE")
ATTRIBUTION = {"goog-pulumi-provisioned": "true"}


@dataclass(frozen=True)
class Settings:
    """What resources fall back on; a project, region or zone is None where nothing names one."""

    project: str | None = None
    region: str | None = None
    zone: str | None = None
    default_labels: dict[str, Value] = field(default_factory=dict)
    attribution: bool = True
    attribution_always: bool = False
    deletion_policy: str = "DELETE"

    @property
    def location(self) -> str | None:
        """Where a cluster goes that names no place: the region, else the zone."""
        return self.region or self.zone


def read_settings(raw: Object) -> Settings:
    """Settings from what Configure was given.

    Values come as strings, nested ones as JSON; the environment's variables stand in for a missing project, region or
    zone.
    """
    config = {name: _decoded(value) for name, value in raw.items() if not isinstance(value, Unknown)}
    labels = plain_object(config.get("defaultLabels"))
    return Settings(
        project=_text(config.get("project")) or _from_environment(PROJECT_VARIABLES),
        region=_text(config.get("region")) or _from_environment(REGION_VARIABLES),
        zone=_text(config.get("zone")) or _from_environment(ZONE_VARIABLES),
        default_labels=labels,
        attribution=config.get("addPulumiAttributionLabel", True) is not False,
        attribution_always=config.get("pulumiAttributionLabelAdditionStrategy") == "PROACTIVE",
        deletion_policy=_text(config.get("deletionPolicy")) or "DELETE",
    )


def _decoded(value: Value) -> Value:
    if isinstance(value, str) and (value[:1] in ("{", "[") or value in ("true", "false")):
        try:
            decoded: Value = json.loads(value)
        except ValueError:
            return value
        return decoded
    return value


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) and value else None


def _from_environment(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
