"""GKE's version numbers: `1.34.4-gke.1193000`."""

import re


def numbers(version: str) -> list[int]:
    """Its numbers, to compare by."""
    return [int(part) for part in re.findall(r"\d+", version)]


def at_least(version: str, wanted: str) -> bool:
    """Whether a version is the wanted one or a later one."""
    return numbers(version) >= numbers(wanted)


def matching(versions: tuple[str, ...], asked: str) -> str | None:
    """The newest version that an alias such as `1.34`, `latest` or a full version means; None where there is none.

    https://docs.cloud.google.com/kubernetes-engine/versioning#specifying_cluster_version
    """
    if asked in ("", "latest", "-"):
        return versions[0]
    return next(
        (version for version in versions if version == asked or re.match(f"{re.escape(asked)}[.-]", version)), None
    )
