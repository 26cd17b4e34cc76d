"""What holds for every stack: the peak lies between least and most, and more of anything never costs less."""

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from infra.plan.report import plan
from infra.stack import GkePlatform, LocalPlatform, Platform, PoolSpec, SliceCount, StackSpec
from tests.render.stacks import GKE
from workloads.spec import JobSpec, ReplicaCount, ServiceSpec, catalogue

TODAY = date(2026, 12, 2)
SHAPES = [found for found in catalogue() if found.chips <= 512]

# Plans are quick, but a busy machine is not: no example has a time limit.
calm = settings(deadline=None, max_examples=60)


@st.composite
def replicas(draw: st.DrawFn) -> ReplicaCount:
    """A number or a range."""
    most = draw(st.integers(1, 4))
    return ReplicaCount(min=draw(st.integers(1, most)), max=most)


@st.composite
def stacks(draw: st.DrawFn) -> StackSpec:
    """Any stack, also those that a rule would refuse because services ask for more than there is."""
    pools = []
    for number in range(draw(st.integers(1, 4))):
        shape, most = draw(st.sampled_from(SHAPES)), draw(st.integers(1, 6))
        pools.append(
            PoolSpec(
                name=f"pool-{number}",
                generation=shape.generation,
                topology=shape.topology,
                machine_type=shape.machine_type,
                slices=SliceCount(min=draw(st.integers(0, most)), max=most),
                capacity=draw(st.sampled_from(["on-demand", "spot", "reservation", "flex-start", "queued"])),
                usd_per_chip_hour=draw(st.none() | st.floats(0.01, 100)),
            )
        )
    names = st.sampled_from([pool.name for pool in pools])
    services = [
        ServiceSpec(name=f"s-{n}", pool=draw(names), model="package:m", replicas=draw(replicas()))
        for n in range(draw(st.integers(0, 3)))
    ]
    jobs = [JobSpec(name=f"j-{n}", pool=draw(names)) for n in range(draw(st.integers(0, 3)))]
    platform: Platform = GkePlatform.model_validate(GKE) if draw(st.booleans()) else LocalPlatform()
    return StackSpec(platform=platform, pools=tuple(pools), services=tuple(services), jobs=tuple(jobs))


@calm
@given(stacks())
def test_the_peak_lies_between_least_and_most(stack: StackSpec) -> None:
    made = plan("s", stack, TODAY)
    assert 0 <= made.chips.min <= made.chips.upgrade_peak <= made.chips.max == stack.chips
    known = made.known_usd_per_hour
    assert 0 <= known.min <= known.upgrade_peak <= known.max
    dollars = made.usd_per_hour
    for least, most in ((dollars.min, dollars.upgrade_peak), (dollars.upgrade_peak, dollars.max)):
        assert least is None or most is None or least <= most


@calm
@given(stacks())
def test_a_total_is_the_sum_of_its_pools_or_unknown(stack: StackSpec) -> None:
    made = plan("s", stack, TODAY)
    for end in ("min", "max"):
        parts = [getattr(pool.usd_per_hour, end) for pool in made.pools]
        total = getattr(made.usd_per_hour, end)
        if None in parts:
            assert total is None
            assert made.platform == "local" or any("totals lack pool" in warn.reason for warn in made.warnings)
        else:
            assert abs(total - sum(parts)) < 0.001
            assert total == getattr(made.known_usd_per_hour, end)


@calm
@given(stacks(), st.integers(0, 3))
def test_one_slice_more_never_lowers_a_number(stack: StackSpec, number: int) -> None:
    pools = list(stack.pools)
    chosen = number % len(pools)
    slices = pools[chosen].slices
    pools[chosen] = pools[chosen].model_copy(update={"slices": SliceCount(min=slices.min, max=slices.max + 1)})
    small, large = plan("s", stack, TODAY), plan("s", stack.model_copy(update={"pools": tuple(pools)}), TODAY)
    for before, after in zip(small.chips, large.chips, strict=True):
        assert before[1] <= after[1]


@calm
@given(stacks())
def test_the_plan_is_the_same_each_time_and_survives_json(stack: StackSpec) -> None:
    made = plan("s", stack, TODAY)
    assert made == plan("s", stack, TODAY)
    assert type(made).model_validate_json(made.model_dump_json()) == made
