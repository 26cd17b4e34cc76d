"""What lies in a bucket is read through the stack's own, which every pod has as a folder."""

from collections.abc import Iterator, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import JobSpec, ServiceSpec

SCHEME = "gs://"


def bucket_problems(
    platform: Entry[LocalPlatform | GkePlatform],
    services: Sequence[Entry[ServiceSpec]],
    jobs: Sequence[Entry[JobSpec]],
) -> Iterator[Problem]:
    """A model or a text in another bucket than `platform.storage`, or in any bucket on this machine."""
    named: list[tuple[Entry[ServiceSpec] | Entry[JobSpec], str, str | None]] = [
        (service, "model", service.text("model")) for service in services
    ]
    named += [(job, "data.source", job.spec.data.source) for job in jobs if job.spec and job.sound("data.source")]
    for entry, part, address in named:
        if address is None or not address.startswith(SCHEME) or platform.spec is None:
            continue
        if not isinstance(platform.spec, GkePlatform):
            yield Problem(
                key=f"{entry.key}.{part}",
                value=address,
                reason="a local stack has no bucket; give a path on this machine",
                allowed=("a path on this machine",),
            )
        elif platform.sound("storage") and _bucket(address) != _bucket(platform.spec.storage):
            own, path = f"{SCHEME}{_bucket(platform.spec.storage)}", address.removeprefix(SCHEME).partition("/")[2]
            yield Problem(
                key=f"{entry.key}.{part}",
                value=address,
                reason="pods see the stack's own bucket alone (platform.storage); copy it there: "
                f"`gcloud storage cp -r {address} {own}/{path}`",
                allowed=(f"{own}/...",),
                nearest=f"{own}/{path}",
            )


def _bucket(address: str) -> str:
    return address.removeprefix(SCHEME).partition("/")[0]
