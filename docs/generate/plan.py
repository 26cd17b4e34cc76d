"""Write docs/plan.md: what `tpu-ray plan` prints, which edits replace TPU hosts, and the prices with their sources.

Run: `python docs/generate/plan.py [--check]`.
"""

import sys
from datetime import date
from pathlib import Path

from docs.generate.page import write_or_check
from infra.cli.plan import shown
from infra.plan.against import against
from infra.plan.changes import PLATFORM_KEYS, POOL_KEYS
from infra.plan.markdown import comparison_page
from infra.plan.price import Mode, Price
from infra.plan.price_table import COMMITMENTS, PRICES
from infra.plan.prices import LIST_DAYS, SPOT_DAYS
from infra.plan.report import plan
from infra.platforms.service_changes import service_changes
from infra.stack import StackError, StackSpec, load_stack
from workloads.spec.fit import MARGIN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "plan.md"
TOO_LARGE = ROOT / "tests" / "stack" / "broken" / "service_slots_do_not_fit.yaml"
DAY = date(2026, 12, 2)
"""The day of the shown outputs, so that they stay the same."""

TEXT = """\
<!-- Written by docs/generate/plan.py from infra/plan and stacks/. -->

# The plan: chips and dollars before anything is made

```console
$ tpu-ray plan -s dev
{shown}```

- **kept**: slices that are there even when nothing runs (`slices.min`).
- **at most**: every pool at `slices.max`.
- **peak of an upgrade**: jobs running, and every service that rolls out beside itself doing so at once.
- **a new cluster**: what a change of a service's image or shape does. KubeRay builds the new cluster beside the old one
  where the pool has the slices for both; where it has not, the service is replaced and does not answer meanwhile.
- **HBM of a chip**: what weights, cache and training state take of it; `unchecked` where a model's size is not known.

Nothing is made and no account is asked. `--json` prints the same as one value, `--markdown` as Markdown. A wrong stack
file ends with 2 and the mistakes that `tpu-ray check` names. A `local` stack has chips and no dollars.

## Whether a model fits

What no chip of its slice can hold is refused before anything is made, by `check`, `plan` and `up` alike. Of a model as
large as Llama 3 8B with `max_slots: 256` on one v6e chip they say:

```text
{refused}
```

The sums are whole bytes, those of one chip (of v7x, two devices). Counted are:

- **of a service**: the weights and the KV cache of `max_slots` x `context` tokens, allocated at the start, both in
  bfloat16, and the logits of one step. They are divided over as many devices as also divide the heads, with KV heads
  repeated where there are fewer; the other devices hold whole copies of the weights and share the slots.
- **of a job**: the weights, a gradient and AdamW's two moments of each in float32, and of the activations only what the
  backward pass must find. `mesh.tensor` divides them; every shard of `mesh.data` has all weights and moments.

One part in {margin} of the HBM is left free as a margin, for what the runtime keeps and for programs' temporaries. What
is let through may still be too large for the compiler, where a program has many temporaries.

Sizes are those of the job (`job:<name>`), or of a `config.json` in the folder or the installed package on the machine
that plans. A `.gguf` file, a bucket, and what is only in the image are unchecked, with a warning. Emulated slices of a
`local` stack have no HBM.

## Before and after, for a pull request

`--against REF` puts the plan of the stack file at a commit, branch or tag beside today's, both with today's prices.
This is `tpu-ray plan -s dev --against main` after an edit that gives pool `train` the topology `4x8` and pool `chat`
one slice more:

---

{compared}
---

It fits into one comment: a list that is too long is cut with a line that counts the rest. Pools that lose hosts are
bold and come first. A file that is not there at that commit makes everything new; a ref that Git does not know ends
with 2.

## Which edits replace TPU hosts

| key of `tpu-ray:pools[]` | another value |
|---|---|
{pool_keys}
| `name` | another pool: the old one goes, the new one comes |

A default that is written out is no change. Hosts of all pools are replaced with their cluster, which these keys of
`tpu-ray:platform` give: {platform_keys} (`zone` where the cluster lies in one zone, `network.nodes` where the new range
does not contain the old one). Then the cluster is told in bold too. [What a change does](changes.md) has all resources.

## Prices

Dollars are list prices of the chips alone. Not counted: GKE's fee for the cluster, nodes without chips, disks, buckets,
traffic, logs. What you really pay goes into the stack file, and wins:

```yaml
  tpu-ray:pools:
    - name: chat
      usd_per_chip_hour: 1.35
```

A price that is not in these tables is unknown: the total is unknown too, and a warning names the pool. A `reservation`
is paid by the commitment behind it, so its price is always yours to write. `queued` machines cost what `flex-start`
machines do. A figure is called old after {list_days} days; one of spot machines, which change daily, after {spot_days};
and one for which Google announced another price, from then on.

- **P**: Google's [price page]({page}), read through public notes that quote it with the day.
- **D**: Google's [page of the Dynamic Workload Scheduler]({dws}), read likewise; it announced other prices from
  {changes_from} on, which are not known here.
- **S**: Google's [SKUs]({skus}), read through [SkyPilot's catalogue]({catalogue}), which a program makes from the Cloud
  Billing API; its day is the earliest that it can be of.

{prices}

Under a commitment:

{commitments}
"""


def page() -> str:
    """The whole page."""
    stack = load_stack(ROOT / "stacks" / "Pulumi.dev.yaml")
    edited = _edited(stack)
    compared = comparison_page(against("dev", "main", stack, edited, DAY, services=service_changes(stack, edited)))
    spot, flex = PRICES["v6e", "us-east5", "spot"], PRICES["v6e", "us-east5", "flex-start"]
    return TEXT.format(
        shown=shown(plan("dev", stack, DAY)),
        refused=_refused(),
        margin=MARGIN,
        compared=compared.replace("### ", "#### "),
        pool_keys="\n".join(
            f"| `{entry.key}` | {'**replaced**: deleted, then made anew' if entry.replaces else _IN_PLACE[entry.key]} |"
            for entry in POOL_KEYS
        ),
        platform_keys=", ".join(f"`{entry.key}`" for entry in PLATFORM_KEYS),
        list_days=LIST_DAYS,
        spot_days=SPOT_DAYS,
        page=PRICES["v6e", "us-east5", "on-demand"].source,
        dws=flex.source,
        changes_from=flex.changes_from,
        skus=spot.source,
        catalogue=spot.via,
        prices=_table(PRICES, ("on-demand", "spot", "flex-start")),
        commitments=_table(COMMITMENTS, ("1-year", "3-year")),
    )


def _refused() -> str:
    """What `check` says of a service whose cache is larger than a chip."""
    try:
        load_stack(TOO_LARGE)
    except StackError as error:
        return str(error)
    raise AssertionError(f"{TOO_LARGE} is right")


_IN_PLACE = {
    "node_image": "GKE updates the hosts in place, one after the other",
    "boot_disk_gib": "GKE updates the hosts in place, one after the other",
    "slices.min": "the slices that stay are kept",
    "slices.max": "the slices that stay are kept",
    "usd_per_chip_hour": "nothing but the plan",
}


def _edited(stack: StackSpec) -> StackSpec:
    edited = []
    for pool in stack.pools:
        if pool.name == "train":
            pool = pool.model_copy(update={"topology": "4x8"})
        if pool.name == "chat":
            slices = pool.slices.model_copy(update={"max": pool.slices.max + 1})
            pool = pool.model_copy(update={"slices": slices})
        edited.append(pool)
    return stack.model_copy(update={"pools": tuple(edited)})


def _table(rows: dict[tuple[str, str, Mode], Price], modes: tuple[Mode, ...]) -> str:
    places = sorted({(generation, region) for generation, region, _ in rows})
    lines = ["| chip | region | " + " | ".join(modes) + " |", "|---|---|" + "---|" * len(modes)]
    for generation, region in places:
        cells = [_cell(rows.get((generation, region, mode))) for mode in modes]
        lines.append(f"| {generation} | {region} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Price | None) -> str:
    if row is None:
        return "unknown"
    letter = "D" if "dws" in row.source else "S" if row.source.endswith("skus") else "P"
    return f"${row.usd_per_chip_hour:g}, {letter} {row.day}"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
