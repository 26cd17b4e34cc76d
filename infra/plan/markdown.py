"""A plan as Markdown for a pull request, never longer than a comment may be. Pure."""

from collections.abc import Sequence

from infra.plan.against import Comparison
from infra.plan.changes import ClusterChange, ClusterFate, Fate, KeyChange, NodePoolFate, PoolChange
from infra.plan.fit import HbmPlan
from infra.plan.job_changes import JobChange
from infra.plan.pools import PoolPlan
from infra.plan.report import Plan
from infra.plan.service_fates import ANSWERS, MEANS, ServiceChange
from infra.plan.words import HOURS, UNKNOWN, price_days, span, totals, usd, usd_span

COMMENT = 65536
"""Most characters of a comment on GitHub."""

_ORDER: tuple[Fate, ...] = ("replaced", "removed", "shrunk", "added", "changed")
"""What destroys hosts comes first, so that a cut list still has it."""
_BOLD: dict[Fate, str] = {
    "replaced": "TPU hosts are replaced in {}",
    "removed": "TPU hosts are deleted in {}",
    "shrunk": "There are fewer slices, and what runs on those that go ends, in {}",
}
_CLUSTER: dict[ClusterFate, str] = {
    "replaced": "**The cluster is deleted and made anew, and with it every pool and all that runs there: {}.**",
    "removed": "**The cluster is deleted, and with it every pool and all that runs there: {}.**",
    "added": "A cluster is made: {}.",
    "other": "Another cluster is taken: {}.",
}
_NODE_POOLS: dict[NodePoolFate, str] = {
    "deleted": "deletes {}",
    "created": "creates {}",
    "replaced-if-empty": "makes {} anew where it has no host",
}


def plan_page(plan: Plan, limit: int = COMMENT) -> str:
    """The plan of one stack."""
    head = [
        f"### Plan of stack `{plan.stack}`",
        "",
        *_totals(plan),
        "",
        "| pool | slice | slices | capacity | chips | dollars an hour |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        f"| {pool.name} | {pool.generation} {pool.topology} | {span(pool.slices.min, pool.slices.max)} "
        f"| {pool.capacity} | {_chips(pool)} | {_dollars(pool)} |"
        for pool in plan.pools
    ]
    return _page(head, rows, "pools", _runs(plan), plan, limit)


def comparison_page(compared: Comparison, limit: int = COMMENT) -> str:
    """Before and after. A cluster that goes and pools that lose TPU hosts are bold and first; unchanged are counted."""
    before, after = compared.before, compared.after
    head = [f"### Plan of stack `{after.stack}` against `{_plain(compared.ref)}`", ""]
    if compared.refused is not None:
        head += [f"The stack file there cannot be read, so everything counts as new: {_plain(compared.refused)}", ""]
    elif before is None:
        head += ["There is no stack file there: everything is new.", ""]
    head += _before_and_after(before, after)
    head += _cluster(compared.cluster)
    for fate, what in _BOLD.items():
        head += _headline([change.pool for change in compared.changes if change.fate == fate and change.hosts], what)
    told = sorted((c for c in compared.changes if c.fate != "same"), key=lambda change: _ORDER.index(change.fate))
    same = len(compared.changes) - len(told)
    if told:
        head += ["", "| pool | | chips | dollars an hour |", "|---|---|---|---|"]
    rows = [_change(change, before, after) for change in told]
    tail = ["", f"{_pools(same)} {'is' if same == 1 else 'are'} unchanged."] if same else []
    tail += [*_services(compared.services), *_jobs(compared.jobs), *_unknown(compared.unknown)]
    return _page(head, rows, "changed pools", tail, after, limit)


def _cluster(change: ClusterChange) -> list[str]:
    if not change.keys or change.fate not in _CLUSTER:
        return []
    return ["", _CLUSTER[change.fate].format("; ".join(map(_key, change.keys)))]


def _headline(pools: Sequence[str], what: str) -> list[str]:
    if not pools:
        return []
    return ["", f"**{what.format(_pools(len(pools)))}: {_some(pools, 10)}.**"]


def _some(names: Sequence[str], most: int) -> str:
    """The first so many names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _totals(plan: Plan) -> list[str]:
    kept, peak, most = totals(plan)
    monthly = totals(plan, HOURS)
    chips = plan.chips
    lines = [
        "| | kept | peak of an upgrade | at most |",
        "|---|---|---|---|",
        f"| chips | {chips.min:,} | {chips.upgrade_peak:,} | {chips.max:,} |",
    ]
    if plan.platform == "gke":
        lines.append(f"| dollars an hour | {kept} | {peak} | {most} |")
        lines.append(f"| dollars in 30 days | {' | '.join(monthly)} |")
    return lines


def _before_and_after(before: Plan | None, after: Plan) -> list[str]:
    words = ("kept", "peak of an upgrade", "at most")
    old_chips = (0, 0, 0) if before is None else (before.chips.min, before.chips.upgrade_peak, before.chips.max)
    new_chips = (after.chips.min, after.chips.upgrade_peak, after.chips.max)
    nothing = (usd(0.0),) * 3
    lines = ["| | before | after |", "|---|---|---|"]
    for word, old, new in zip(words, old_chips, new_chips, strict=True):
        lines.append(f"| chips, {word} | {old:,} | {_new(f'{old:,}', f'{new:,}')} |")
    if after.platform == "local" and (before is None or before.platform == "local"):
        return lines
    for hours, unit in ((1, "an hour"), (HOURS, "in 30 days")):
        olds = nothing if before is None else totals(before, hours)
        for word, was, now in zip(words, olds, totals(after, hours), strict=True):
            lines.append(f"| dollars {unit}, {word} | {was} | {_new(was, now)} |")
    return lines


def _services(changes: Sequence[ServiceChange]) -> list[str]:
    told = [change for change in changes if change.fate != "same"]
    if not told:
        return []
    rows = [
        f"| {change.service} | {change.fate}: {MEANS[change.fate]} | {ANSWERS[change.answers]} | {change.peak_chips} |"
        for change in told
    ]
    return ["", "| service | | meanwhile | chips at the peak |", "|---|---|---|---|", *rows]


def _jobs(changes: Sequence[JobChange]) -> list[str]:
    told = [change for change in changes if change.fate != "same"]
    if not told:
        return []
    return ["", "| job | |", "|---|---|", *(f"| {change.job} | {change.fate}: {change} |" for change in told)]


def _unknown(sentences: Sequence[str]) -> list[str]:
    return [line for sentence in sentences for line in ("", sentence)]


def _new(before: str, after: str) -> str:
    """Two unknown sums need not be the same."""
    return "the same" if before == after and not after.startswith(UNKNOWN) else after


def _change(change: PoolChange, before: Plan | None, after: Plan) -> str:
    old, new = _of(before, change.pool), _of(after, change.pool)
    parts = [*map(_key, change.keys), *(_node_pools(change) if old and new else [])]
    what = f"{change.fate}: {'; '.join(parts)}" if parts else change.fate
    name = change.pool
    if change.fate in _BOLD and change.hosts:
        name, what = f"**{name}**", f"**{what}**"
    chips = _arrow(_chips(old) if old else "0", _chips(new) if new else "0")
    dollars = _arrow(_dollars(old) if old else usd(0.0), _dollars(new) if new else usd(0.0))
    return f"| {name} | {what} | {chips} | {dollars} |"


def _node_pools(change: PoolChange) -> list[str]:
    """The node pools that come, go, or may be made anew. The others share the fate of their pool."""
    named = {fate: [made.name for made in change.node_pools if made.fate == fate] for fate in _NODE_POOLS}
    return [_NODE_POOLS[fate].format(_some(names, 3)) for fate, names in named.items() if names]


def _key(change: KeyChange) -> str:
    return f"{change.key} {_value(change.before)} → {_value(change.after)}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else _plain(str(value))


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _of(plan: Plan | None, name: str) -> PoolPlan | None:
    return next((pool for pool in plan.pools if pool.name == name), None) if plan else None


def _chips(pool: PoolPlan) -> str:
    return span(pool.slices.min * pool.chips_per_slice, pool.slices.max * pool.chips_per_slice)


def _dollars(pool: PoolPlan) -> str:
    return usd_span(pool.usd_per_hour.min, pool.usd_per_hour.max) if pool.zone is not None else "none"


def _runs(plan: Plan) -> list[str]:
    services = [
        f"- service {s.name}: {s.chips} chips of pool {s.pool}; {s.upgrade.means}{_hbm(s.hbm)}" for s in plan.services
    ]
    jobs = [f"- job {j.name}, run {j.run}: {j.chips} chips of pool {j.pool}{_hbm(j.hbm)}" for j in plan.jobs]
    return ["", *services, *jobs] if services or jobs else []


def _hbm(chip: HbmPlan | None) -> str:
    return "" if chip is None else f"; HBM of a chip: {chip}"


def _page(head: Sequence[str], rows: Sequence[str], what: str, tail: Sequence[str], plan: Plan, limit: int) -> str:
    """Head, rows, tail and warnings; rows first and then what follows are cut where they would be too long."""
    days = price_days(plan)
    foot = ["", f"Prices: list prices of {days}, see `tpu-ray plan --json` for their sources."] if days else []
    room = limit - len("\n".join([*head, *foot])) - 200
    shown, left = _fitting(rows, room * 2 // 3 if tail or plan.warnings else room)
    lines = [*shown, *([f"| {left} more {what} | | | |"] if left else [])]
    rest = [*tail, *(["", "Warnings:", ""] if plan.warnings else []), *(f"- {warn}" for warn in plan.warnings)]
    more, left = _fitting(rest, room - len("\n".join(lines)))
    cut = ["", f"{left} more lines; `tpu-ray plan -s {plan.stack}` shows them."] if left else []
    return "\n".join([*head, *lines, *more, *cut, *foot]) + "\n"


def _fitting(lines: Sequence[str], room: int) -> tuple[Sequence[str], int]:
    """The first lines that fit into so many characters, and how many do not."""
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:number], len(lines) - number
    return lines, 0


def _pools(count: int) -> str:
    return "1 pool" if count == 1 else f"{count} pools"


def _plain(text: str) -> str:
    """Text that cannot end a table's cell or a code span."""
    return " ".join(text.replace("|", "/").replace("`", "'").split())
