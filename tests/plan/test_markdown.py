"""The comment of a pull request: before and after, what is replaced in bold and first, never too long."""

from datetime import date

from infra.plan.against import against
from infra.plan.markdown import COMMENT, comparison_page, plan_page
from infra.plan.report import plan
from infra.stack import StackSpec
from tests.plan.stacks import JOB, pool, service, stack

TODAY = date(2026, 12, 2)


def page(before: StackSpec | None, after: StackSpec, refused: str | None = None) -> list[str]:
    return comparison_page(against("prod", "main", before, after, TODAY, refused)).splitlines()


def test_jobs_are_told_beside_services() -> None:
    pools = [pool("chat"), pool("train", "4x4", slices={"min": 0, "max": 1})]
    served = [service("chat", "chat")]
    before = stack(pools, served, [JOB])
    for change, told in (
        ({"run": "r2"}, "| train | new run: the run before ends, then this one begins |"),
        ({"steps": 9}, "| train | next run: applies to the next run: write another `run:` (steps) |"),
    ):
        assert told in page(before, stack(pools, served, [{**JOB, **change}]))
    assert not [line for line in page(before, before) if line.startswith("| train |")]


def test_a_paused_service_takes_no_slice() -> None:
    pools = [pool("chat", slices={"min": 0, "max": 3})]
    planned = plan("dev", stack(pools, [{**service("chat", "chat"), "paused": True}], []), TODAY)
    assert (planned.chips.upgrade_peak, planned.services[0].chips) == (0, 0)
    assert planned.services[0].upgrade.means == "paused: it takes no slice"


def test_what_two_files_cannot_say_is_said() -> None:
    pools, served = [pool("chat")], [service("chat", "chat")]
    image = stack(pools, served, [])
    archive = image.model_copy(update={"platform": image.platform.model_copy(update={"code": "archive"})})
    assert not [line for line in page(image, image) if "code is archive" in line]
    assert [line for line in page(archive, archive) if line.startswith("platform.code is archive: whether an edit")]


def test_a_replaced_pool_is_bold_and_comes_first() -> None:
    served = [service("chat", "chat"), service("next", "next")]
    small = {"min": 0, "max": 1}
    before = stack([pool("chat"), pool("next"), pool("train", "4x4", slices=small)], served, [JOB])
    after = stack(
        [pool("chat", slices=2), pool("next"), pool("train", "8x8", slices=small)],
        served,
        [{**JOB, "data": {"global_batch": 256}}],
    )
    lines = page(before, after)
    # 16 chips at 2.70 become 64 chips: 43.20 and 172.80; one more slice of 4 chips is 10.80.
    replaced = "| **train** | **replaced: topology 4x4 → 8x8** | 0 to 16 → 0 to 64 "
    assert replaced + "| $0.00 to $43.20 → $0.00 to $172.80 |" in lines
    changed = "| chat | changed: slices.min 1 → 2; slices.max 1 → 2 | 4 → 8 | $10.80 → $21.60 |"
    assert changed in lines
    assert lines.index(changed) > next(n for n, line in enumerate(lines) if line.startswith("| **train**"))
    assert "**TPU hosts are replaced in 1 pool: train.**" in lines
    assert "1 pool is unchanged." in lines
    assert "| chips, kept | 8 | 12 |" in lines
    assert "| chips, at most | 24 | 76 |" in lines
    assert "| dollars an hour, kept | $21.60 | $32.40 |" in lines
    assert "| dollars in 30 days, kept | $15,552.00 | $23,328.00 |" in lines


def test_only_slices_changed_means_nothing_is_bold() -> None:
    served = [service("chat", "chat")]
    text = "\n".join(page(stack([pool("chat")], served), stack([pool("chat", slices=2)], served)))
    assert "**" not in text


def test_a_pool_that_goes_is_bold_since_its_hosts_are_deleted() -> None:
    lines = page(stack([pool("old")], [service("a", "old")]), stack([pool("new")], [service("a", "new")]))
    assert "**TPU hosts are deleted in 1 pool: old.**" in lines
    assert "| **old** | **removed** | 4 → 0 | $10.80 → $0.00 |" in lines
    assert "| new | added | 0 → 4 | $0.00 → $10.80 |" in lines


def test_a_cluster_that_is_made_anew_is_told_in_bold_before_its_pools() -> None:
    served = [service("chat", "chat")]
    before = stack([pool("chat")], served)
    lines = page(before, stack([pool("chat")], served, platform={"network": {"pods": "10.128.0.0/12"}}))
    said = "platform.network.pods 10.16.0.0/12 → 10.128.0.0/12"
    anew = f"**The cluster is deleted and made anew, and with it every pool and all that runs there: {said}.**"
    assert lines.index(anew) < lines.index("**TPU hosts are replaced in 1 pool: chat.**")
    assert f"| **chat** | **replaced: {said}** | 4 | $10.80 |" in lines
    gone = page(before, stack([pool("chat")], served, platform={"cluster": {"existing": "theirs"}}))
    assert any(line.startswith("**The cluster is deleted, and with it every pool") for line in gone)
    wider = page(before, stack([pool("chat")], served, platform={"network": {"nodes": "10.0.0.0/19"}}))
    assert "**" not in "\n".join(wider)
    taken = {"cluster": {"existing": "theirs"}}
    made = page(stack([pool("chat")], served, platform=taken), before)
    assert "A cluster is made: platform.cluster.existing theirs → none." in made


def test_fewer_slices_are_bold_and_name_the_node_pools_that_go() -> None:
    served = [service("chat", "chat")]
    two, one = stack([pool("chat", "4x4", slices=2)], served), stack([pool("chat", "4x4")], served)
    lines = page(two, one)
    assert "**There are fewer slices, and what runs on those that go ends, in 1 pool: chat.**" in lines
    keys = "slices.min 2 → 1; slices.max 2 → 1"
    # 2 slices of 16 chips at 2.70 are 86.40.
    assert f"| **chat** | **shrunk: {keys}; deletes chat-1** | 32 → 16 | $86.40 → $43.20 |" in lines
    text = "\n".join(page(one, two))
    assert "| chat | changed: slices.min 1 → 2; slices.max 1 → 2; creates chat-1 | 16 → 32 |" in text
    assert "**" not in text
    ten = stack([pool("chat", "4x4", slices=10)], served)
    assert "creates chat-1, chat-2, chat-3 and 6 more |" in "\n".join(page(one, ten))


def test_a_slice_that_may_have_no_host_is_not_called_lost() -> None:
    served = [service("chat", "chat")]
    before = stack([pool("chat", "4x4", slices={"min": 0, "max": 1})], served)
    text = "\n".join(page(before, stack([pool("chat", "4x4")], served)))
    assert "| chat | changed: slices.min 0 → 1; makes chat-0 anew where it has no host |" in text
    assert "**" not in text


def test_no_file_there_means_everything_is_new() -> None:
    lines = page(None, stack([pool("chat")], [service("chat", "chat")]))
    assert "There is no stack file there: everything is new." in lines
    assert "| chat | added | 0 → 4 | $0.00 → $10.80 |" in lines


def test_a_file_that_cannot_be_read_today_is_told() -> None:
    text = "\n".join(
        page(None, stack([pool("chat")], [service("chat", "chat")]), "tpu-ray:pools[0].topology: no | such")
    )
    assert "cannot be read, so everything counts as new: tpu-ray:pools[0].topology: no / such" in text


def test_unknown_dollars_are_said_to_be_unknown() -> None:
    pools = [pool("chat"), pool("big", "2x2x2", "v7x", capacity="spot")]
    served = [service("chat", "chat"), service("big", "big")]
    text = plan_page(plan("prod", stack(pools, served), TODAY))
    assert "| dollars an hour | unknown, at least $10.80 |" in text


def test_two_unknown_sums_are_not_called_the_same() -> None:
    served = [service("big", "big")]
    before = stack([pool("big", "2x2x2", "v7x", capacity="spot")], served)
    after = stack([pool("big", "2x2x2", "v7x", capacity="spot", slices=2)], served)
    assert "| dollars an hour, kept | unknown | unknown |" in page(before, after)


def hundred(topology: str) -> StackSpec:
    names = [f"pool-with-a-rather-long-name-{number}" for number in range(100)]
    pools = [pool(name, topology, slices={"min": 0, "max": 2}) for name in names]
    return stack(pools, [service(f"service-{number}", name) for number, name in enumerate(names)])


def test_a_hundred_replaced_pools_fit_into_one_comment() -> None:
    text = comparison_page(against("prod", "main", hundred("2x2"), hundred("4x4"), TODAY))
    assert len(text) <= COMMENT
    assert "TPU hosts are replaced in 100 pools: " in text
    assert text.count("| **pool-with") == 100


def test_a_page_that_is_too_long_is_cut_with_a_line_that_counts_the_rest() -> None:
    compared = against("prod", "main", hundred("2x2"), hundred("4x4"), TODAY)
    for limit in (3000, 8000, 20000):
        text = comparison_page(compared, limit)
        assert len(text) <= limit
        shown = text.count("| **pool-with")
        assert shown < 100 or limit == 20000
        assert f"| {100 - shown} more changed pools | | | |" in text or shown == 100
        assert "more lines; `tpu-ray plan -s prod` shows them." in text
    alone = plan_page(compared.after, 4000)
    assert len(alone) <= 4000
    assert "more pools | | | |" in alone


def test_every_table_has_as_many_cells_as_its_heading() -> None:
    for text in (
        comparison_page(against("prod", "main", hundred("2x2"), hundred("4x4"), TODAY), 8000),
        plan_page(plan("prod", hundred("2x2"), TODAY)),
    ):
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("|") and lines[number - 1].startswith("|"):
                assert line.count("|") >= 5 or line.count("|") == lines[number - 1].count("|")
