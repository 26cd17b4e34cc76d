"""Write docs/upgrades.md: what each edit does to services and runs, from the table that the tests hold.

Run: `python docs/generate/upgrades.py [--check]`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from docs.generate.page import write_or_check
from infra.plan.service_fates import ANSWERS, MEANS
from tests.gke.range_edits import POOLS as RANGE_POOLS
from tests.gke.range_edits import RANGE_EDITS
from tests.gke.range_edits import SERVICES as RANGE_SERVICES
from tests.gke.room_edits import EDITS
from tests.gke.service_edits import JOBS, POOLS, SERVICES, ServiceEdit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "upgrades.md"

HEAD = """\
<!-- Written by docs/generate/upgrades.py from tests/gke/service_edits.py and room_edits.py. -->

# What happens to my services when I change this key?

Ask before anything is made:

```sh
.venv/bin/tpu-ray plan -s dev --against main   # what becomes of each service, who answers meanwhile, chips at the peak
.venv/bin/tpu-ray preview -s dev               # the same from the stack's state, beside every resource
```

How a service takes a change follows from two things: whether its Ray cluster changes (image, Ray's version, pool,
shape), and whether its pool has slices to hold the new cluster beside the old one.

| | | meanwhile |
|---|---|---|
{fates}

**Without slices to spare nothing waits for them.** KubeRay would bring up the second cluster all the same, and its pods
would wait for ever; so the old one goes first, and the plan says with how many slices it need not.

**KubeRay's incremental upgrade is not used.** It wants Ray's autoscaler (ValidateClusterUpgradeOptions, KubeRay 1.5 and
1.6), which handles [no slice of several hosts](gke.md#replicas-that-come-and-go), and a Gateway, through which it moves
requests step by step; KubeRay's chart leaves it off. It would spare slices only where a service has several replicas.
With slices to spare, the new cluster beside the old one loses no request.

**What the same edit takes away goes last.** Pulumi deletes at the end of an `up`, and before that it waits for the
services. So a second cluster that needs the slices of a service or a job that goes would wait in vain; the plan calls
it stuck, and two edits do it.

**Services of one pool take turns** where its spare slices are too few for all their second clusters at once.

**One more replica disturbs none.** Every slice is a worker group of its own, and KubeRay adds groups to a cluster that
runs. One replica less is a change of the cluster.

**A range of replicas moves without a change.** Another `min` is Serve's alone; a larger `max` adds worker groups, and
no slice before it is wanted. A smaller `max`, another `idle_s`, and a number that becomes a range are changes of the
cluster. A new cluster beside the old one begins with `min` replicas; the chips at the peak are those of `max`.

**A run keeps what it was started with.** Only another `run:` starts it again, with everything that changed since.

The tables are the answers for one stack on GKE, held by a test on the Pulumi engine and an API server, where a double
does what KubeRay does:

```yaml
pools:
{pools}services:
{services}jobs:
{jobs}```

| edit | services | RayServices and RayJobs |
|---|---|---|
"""


RANGES = """
## Replicas that come and go

```yaml
pools:
{pools}services:
{services}```

| edit | services | RayServices and RayJobs |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    fates = [
        ("in place", "late"),
        ("in place", "all"),
        ("more slices", "all"),
        ("other number", "all"),
        ("beside", "all"),
        ("stuck", "all"),
        ("replaced", "none"),
        ("new hosts", "none"),
    ]
    told = [f"| {fate} | {MEANS[fate]} | {ANSWERS[answers]} |" for fate, answers in fates]  # type: ignore[index]
    head = HEAD.format(fates="\n".join(told), pools=_listed(POOLS), services=_listed(SERVICES), jobs=_listed(JOBS))
    ranges = RANGES.format(pools=_listed(RANGE_POOLS), services=_listed(RANGE_SERVICES))
    return head + _rows(EDITS) + ranges + _rows(RANGE_EDITS)


def _rows(edits: Sequence[ServiceEdit]) -> str:
    return "".join(f"| `{edit.keys}` | {_told(edit)} | {_done(edit)} |\n" for edit in edits)


def _listed(entries: Sequence[Mapping[str, object]]) -> str:
    lines = (yaml.safe_dump(dict(one), default_flow_style=True, sort_keys=False, width=1000) for one in entries)
    return "".join(f"- {line}" for line in lines)


def _told(edit: ServiceEdit) -> str:
    return "; ".join(_service(edit)) or "the same"


def _service(edit: ServiceEdit) -> Iterator[str]:
    for name, (fate, answers, chips) in edit.told.items():
        shown = f"**{fate}**" if answers == "none" and fate != "added" else fate
        yield f"{name} {shown}, {ANSWERS[answers]}, {chips} chips"


def _done(edit: ServiceEdit) -> str:
    return "; ".join(edit.expected) or "nothing"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
