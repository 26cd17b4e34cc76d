"""Write docs/changes.md: what each edit of a stack file does to every resource, from the table that the tests hold.

Run: `python docs/generate/changes.py [--check]`.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from docs.generate.page import write_or_check
from tests.gke.edit import POOLS, Edit
from tests.gke.edits import EDITS, IN_THE_CLUSTER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "changes.md"

HEAD = """\
<!-- Written by docs/generate/changes.py from tests/gke/edits.py. -->

# What happens when I change this key?

Write the edit, and ask before anything is made:

```sh
.venv/bin/tpu-ray plan -s dev --against main   # chips, dollars, and in bold what loses its TPU hosts
.venv/bin/tpu-ray preview -s dev               # every resource, and the properties that differ
```

The tables below are the answers for one stack on GKE. A test previews each edit on the Pulumi engine, with a stand-in
that plans as Google's provider was seen to plan, and asks [the plan](plan.md) the same. The stack has these pools:

```yaml
{pools}```

`chat` and `wide` are slices of one host: nodes of `NodePool chat-0` and `NodePool wide-0`. `train` and `night` are
slices of several hosts: one node pool each, `train-0` and `train-1`, and `night-0`, which has no host until something
asks for it. [The node pools](node-pools.md) tells more.

## What the words mean

| word | | what runs |
|---|---|---|
| created | It comes. | is not touched |
| updated | The same resource is changed in place. | is not touched, but where hosts are made again: see below |
| deleted | It goes. | ends, where it ran there |
| **replaced** | **It is deleted, then made anew.** | **ends, and waits until the new one is there** |

**The old one goes first**: quota and reservation hold one set of machines, and at Google the name is taken. How long a
pool is away is how long Google takes to find machines; on a day without free ones that may be long. What serves from
the pool does not answer until then; a job goes on from its last checkpoint.

To have the new machines first, give the pool another name in the same edit. That is another pool, and what goes is
deleted when all else is there. You need quota for both, and pay for both meanwhile.

**A cluster goes behind its pools and comes before them.** "With all in it" is every `NodePool`, the namespace and the
pods' service account. Nothing of the stack answers until a new cluster and its machines are there.

With `cluster.deletion_protection: true`, the default, all that deletes or replaces is refused. Write `false` and `up`,
then make the edit. This stack has `false`.
"""


@dataclass(frozen=True)
class Group:
    """Edits of one kind. `pattern` matches the beginning of `Edit.keys`."""

    heading: str
    pattern: str
    told: str


GROUPS = (
    Group(
        "More and fewer slices",
        r"pools \w+: slices ",
        "The slices that stay are not touched. Other limits cost nothing; a slice that goes ends what runs on it: "
        "of several hosts always the one with the highest number. GKE does not resize a slice of several hosts by "
        "hand: where a slice on demand becomes one that is kept, its node pool is made anew if it has no host, and "
        "only updated if it has them, so none is lost.",
    ),
    Group(
        "Another slice, machine, capacity or place",
        r"pools \w+: (topology|machine_type|generation|capacity|zone|second_nic) ",
        "Other machines, so the old ones go.",
    ),
    Group(
        "Image, boot disk, price",
        r"pools \w+: (node_image|boot_disk_gib|usd_per_chip_hour) ",
        "GKE makes the hosts again in place, one after the other, because no chips are there for a surge. A slice "
        "of several hosts does no work before the last of them is back.",
    ),
    Group("Pools that come and go", r"(pools \w+: another name|a pool (more|less))$", "Another name is another pool."),
    Group(
        "The cluster",
        r"cluster: ",
        "GKE upgrades a control plane while the pods run; one of `location: zone` takes no changes meanwhile: "
        "[Google on upgrades](https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-upgrades). "
        "Another machine type of `cpu_nodes` moves the heads of the Ray clusters to other nodes, and what they "
        "serve does not answer until they are back.",
    ),
    Group(
        "The network",
        r"network: ",
        "A range that contains the old range of nodes is taken in place. Any other belongs to the cluster for good.",
    ),
    Group(
        "The platform",
        r"platform: ",
        "No bucket is deleted at Google, unless `delete_storage: true` was brought up before: what is called "
        "deleted or replaced here stays where it is, with the checkpoints in it, and is no longer part of the "
        "stack. The zone of the platform is that of all pools that name none. Another `namespace` deletes the old "
        "one with all that runs in it.",
    ),
)

WORDS = {"replace": "**replaced: {}**", "delete": "deleted: {}", "create": "created: {}", "update": "updated: {}"}
"""In the order in which they are told."""


def page() -> str:
    """The whole page.

    Raises:
        ValueError: an edit belongs to no group, or to two.
    """
    parts = [HEAD.format(pools="".join(map(_pool, POOLS)))]
    grouped: dict[Group, list[Edit]] = {group: [] for group in GROUPS}
    for edit in EDITS:
        if edit.keys == "nothing":
            continue
        mine = [group for group in GROUPS if re.match(group.pattern, edit.keys)]
        if len(mine) != 1:
            raise ValueError(
                f"the edit `{edit.keys}` belongs to {len(mine)} groups of docs/generate/changes.py, not to 1"
            )
        grouped[mine[0]].append(edit)
    for group, edits in grouped.items():
        rows = [f"| `{_keys(edit)}` | {_told(edit)} |" for edit in edits]
        parts.append(
            "\n".join([f"## {group.heading}", "", _wrapped(group.told), "", "| edit | |", "|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def _wrapped(text: str) -> str:
    """The text in lines as long as the project's."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _pool(pool: object) -> str:
    """One line of the stack file."""
    text = yaml.safe_dump(pool, default_flow_style=True, sort_keys=False, width=1000)
    return f"- {text}"


def _keys(edit: Edit) -> str:
    return edit.keys.removeprefix("pools ").replace("->", "→")


def _told(edit: Edit) -> str:
    """What happens: replaced, deleted, created, updated, with the properties that differ."""
    return "; ".join(_parts(edit.expected)) or "nothing"


def _parts(lines: tuple[str, ...]) -> Iterator[str]:
    whole = set(IN_THE_CLUSTER) <= set(lines)
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if whole and line in IN_THE_CLUSTER:
            continue
        what, _, keys = line.partition(": ")
        operation, _, resource = what.partition(" ")
        found.setdefault((operation, keys), []).append(f"`{resource}`")
    for word, text in WORDS.items():
        for (operation, keys), resources in found.items():
            if operation == word:
                every = " with all in it" if whole and "`Cluster cluster`" in resources else ""
                yield text.format(", ".join(resources) + every) + (f" ({keys})" if keys else "")


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
