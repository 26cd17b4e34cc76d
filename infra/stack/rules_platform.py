"""Rules about the platform's keys together."""

from collections.abc import Iterator

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.problems import Problem
from infra.stack.translate import Entry


def platform_problems(entry: Entry[LocalPlatform | GkePlatform]) -> Iterator[Problem]:
    """Two ports that are one, a zone outside its region."""
    spec = entry.spec
    one_port = isinstance(spec, LocalPlatform) and spec.http_port == spec.dashboard_port
    if isinstance(spec, LocalPlatform) and one_port and entry.sound("http_port", "dashboard_port"):
        wrong, other = ("dashboard_port", "http_port")
        if not entry.wrote(wrong):
            wrong, other = other, wrong
        yield Problem(
            key=f"{entry.key}.{wrong}",
            value=spec.http_port,
            reason=f"{other} is this port too",
            allowed=("another port from 1024 to 65535",),
            nearest=spec.http_port + 1 if spec.http_port < 65535 else spec.http_port - 1,
        )
    if isinstance(spec, GkePlatform) and entry.sound("region", "zone") and spec.zone.rpartition("-")[0] != spec.region:
        yield Problem(
            key=f"{entry.key}.zone",
            value=spec.zone,
            reason=f"this zone is not in region {spec.region}",
            allowed=(f"{spec.region}-<letter>",),
            nearest=f"{spec.region}-{spec.zone.rpartition('-')[2]}",
        )
