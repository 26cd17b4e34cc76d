"""The forms that texts of a stack file have: the pattern, the same in words, and the nearest text that follows it."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from workloads.spec.engines import IMPORT_PATTERN, PATH_PATTERN
from workloads.spec.job import COMMAND_PATTERN, SCHEDULE_PATTERN, ZONE_PATTERN
from workloads.spec.secret import SECRET_KEY_PATTERN, SECRET_PATTERN
from workloads.spec.service import NAME_PATTERN

# https://cloud.google.com/resource-manager/docs/creating-managing-projects
PROJECT = r"^[a-z][-a-z0-9]{4,28}[a-z0-9]$"
# https://docs.cloud.google.com/compute/docs/regions-zones
REGION = r"^[a-z]+-[a-z]+[0-9]+$"
ZONE = r"^[a-z]+-[a-z]+[0-9]+-[a-z]+[0-9]*[a-z]?$"
# https://github.com/distribution/reference/blob/main/reference.go
IMAGE = (
    r"^([a-zA-Z0-9][-.a-zA-Z0-9]*(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[a-zA-Z0-9_][-.a-zA-Z0-9_]{0,127})?(@sha256:[0-9a-f]{64})?$"
)
# https://docs.cloud.google.com/storage/docs/buckets#naming
_FOLDER = r"([^/.\n\r][^/\n\r]*|[.][^/.\n\r][^/\n\r]*|[.][.][^/\n\r]+)"
"""Not empty, `.` or `..`: to the bucket these are names, and to its folder in the pods ways."""
BUCKET = rf"^gs://[a-z0-9][-_.a-z0-9]{{1,61}}[a-z0-9](/{_FOLDER})*/?$"
# https://docs.cloud.google.com/compute/docs/general-purpose-machines
MACHINE = r"^[a-z][a-z0-9]*-[a-z0-9]+(-[a-z0-9]+)*$"
# https://docs.cloud.google.com/compute/docs/instances/reservations-shared, and AI-Hypercomputer/xpk core/capacity.py
RESERVATION = (
    r"^(projects/[a-z][-a-z0-9]{4,28}[a-z0-9]/reservations/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
    r"(/reservationBlocks/[a-z0-9]([-a-z0-9]*[a-z0-9])?(/reservationSubBlocks/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?)?$"
)
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
CIDR = rf"^{_BYTE}([.]{_BYTE}){{3}}/(3[0-2]|[12]?[0-9])$"
GKE_VERSION = r"^1[.][0-9]+([.][0-9]+(-gke[.][0-9]+)?)?$"
VERSION = r"^[0-9]+[.][0-9]+[.][0-9]+$"
OPERATOR_VERSION = r"^1[.][0-9]+[.][0-9]+$"
# https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/kuberay-gcs-ft.html
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
REDIS = rf"^(rediss?://)?[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?:{_PORT}$"


@dataclass(frozen=True)
class Form:
    """A pattern in words. `nearest` gives the closest text of that form, or None."""

    reason: str
    example: str
    nearest: Callable[[str], str | None]


def slug(value: str) -> str | None:
    """The name closest to `value`: lower case, dashes for all else, a letter first."""
    without_marks = "".join(c for c in unicodedata.normalize("NFKD", value) if not unicodedata.combining(c))
    text = re.sub(r"[^a-z0-9]+", "-", without_marks.lower()).strip("-")
    if text and not text[0].isalpha():
        text = f"m-{text}"
    return text or None


def form_of(pattern: str) -> Form:
    """The words for one of the patterns above."""
    return _FORMS[pattern]


def _none(value: str) -> None:
    """No text is closer than any other."""


def _front(pattern: str) -> Callable[[str], str | None]:
    """The first part of a text that follows the pattern."""
    bare = re.compile(pattern.strip("^$"))

    def nearest(value: str) -> str | None:
        found = bare.search(value.lower())
        return found.group(0) if found else None

    return nearest


def _bucket(value: str) -> str | None:
    bare = re.sub(r"^[a-z0-9]*:/*", "", value.lower())
    parts = re.sub(r"[^-_.a-z0-9/]", "-", bare).strip("-/").split("/")
    close = "gs://" + "/".join(part for part in parts if part not in ("", ".", ".."))
    return close if re.fullmatch(BUCKET, close) else None


def _redis(value: str) -> str | None:
    """Without who logs in in front, and a database behind."""
    found = re.search(rf"{REDIS.strip('^$')}(?=/|$)", value.lower().rpartition("@")[2])
    return found[0] if found else None


def _import_path(value: str) -> str | None:
    close = value if ":" in value else ":".join(value.strip().rsplit(".", 1))
    return close if re.fullmatch(IMPORT_PATTERN, close) else None


def _path(value: str) -> str | None:
    close = f"/{value.strip().lstrip('/')}"
    return close if re.fullmatch(PATH_PATTERN, close) else None


def _version(value: str) -> str | None:
    return f"{value}.0" if re.fullmatch(r"[0-9]+[.][0-9]+", value) else _front(VERSION)(value)


def _operator_version(value: str) -> str | None:
    return f"{value}.0" if re.fullmatch(r"1[.][0-9]+", value) else _front(OPERATOR_VERSION)(value)


_FORMS = {
    NAME_PATTERN: Form(
        "a name is a DNS label: lower-case letters, digits and dashes, a letter first, no dash at the end",
        "a name such as my-model-1",
        slug,
    ),
    PROJECT: Form(
        "a project id has 6 to 30 lower-case letters, digits and dashes, a letter first",
        "an id such as my-project-123",
        _none,
    ),
    REGION: Form("a region is written like us-east5", "a region such as us-east5", _front(REGION)),
    ZONE: Form("a zone is its region, a dash and a letter", "a zone such as us-east5-a", _none),
    IMAGE: Form("an image is written registry/path/name:tag", "an image such as ghcr.io/me/tpu-ray:1.0", _none),
    BUCKET: Form(
        "a bucket is written gs://<name>, with a folder behind it or none; no part of its path is empty, `.` or `..`",
        "gs://my-bucket/runs",
        _bucket,
    ),
    MACHINE: Form("a machine type is written like n2-standard-8", "a type such as n2-standard-8", _none),
    RESERVATION: Form(
        "a reservation is its name, or projects/<project>/reservations/<name>",
        "my-reservation, or projects/my-project/reservations/my-reservation",
        _none,
    ),
    COMMAND_PATTERN: Form("a command is more than blanks", "a command such as python my/train.py", _none),
    SCHEDULE_PATTERN: Form(
        "a schedule has five fields: minute, hour, day of the month, month, day of the week",
        "five fields such as 0 3 * * *",
        _none,
    ),
    ZONE_PATTERN: Form("a time zone is written like Europe/Berlin", "a zone such as Europe/Berlin", _none),
    CIDR: Form("an address range is written like 10.0.0.0/20", "a range such as 10.0.0.0/20", _none),
    GKE_VERSION: Form("a version of GKE is written like 1.35 or 1.35.3-gke.1737000", "1.35", _front(GKE_VERSION)),
    IMPORT_PATTERN: Form(
        "what Serve imports is written module:attribute", "a path such as my_app.main:build", _import_path
    ),
    PATH_PATTERN: Form("a path begins with a slash and has no query", "a path such as /healthz", _path),
    VERSION: Form("a version of Ray has three numbers", "a version such as 2.60.0", _version),
    OPERATOR_VERSION: Form("a version of KubeRay has three numbers", "a version such as 1.6.0", _operator_version),
    REDIS: Form("a Redis is named by its host and port (1 to 65535), and by nothing else", "redis.ml.svc:6379", _redis),
    SECRET_PATTERN: Form(
        "a Kubernetes secret's name has lower-case letters, digits, dashes and dots, with a letter or a digit first, "
        "last, and beside each dot",
        "a name such as my-keys",
        slug,
    ),
    SECRET_KEY_PATTERN: Form(
        "a key of a Kubernetes secret has letters, digits, `-`, `_` and `.`, and is neither `.` nor begins with `..`",
        "a key such as api-key",
        _none,
    ),
}
