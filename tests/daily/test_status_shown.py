"""How a stack is told: exit codes and the tables for people."""

import pytest

from infra.cli.status import shown
from infra.platforms.state_seen import PoolSeen, RunSeen, RunState, ServiceSeen, ServiceState, StackSeen

POOL = PoolSeen(name="quad", generation="v6e", topology="4x4", slices_there=1, slices_min=0, slices_max=2)


def service(state: ServiceState, reason: str = "") -> ServiceSeen:
    url = "http://127.0.0.1:8000/chat/v1"
    return ServiceSeen(
        name="chat", pool="quad", state=state, replicas_ready=0, replicas_wanted=2, url=url, reason=reason
    )


def test_a_range_of_replicas_is_told_with_what_is_there() -> None:
    seen = service("ready").model_copy(update={"replicas_ready": 2, "replicas_wanted": 1, "replicas_most": 3})
    lines = shown(StackSeen(stack="t", platform="gke", up=True, services=(seen,))).splitlines()
    assert "chat     quad  ready  2/1 to 3  http://127.0.0.1:8000/chat/v1" in lines


def run(state: RunState, submitted: bool = False, reason: str = "") -> RunSeen:
    return RunSeen(
        name="story",
        run="story-r1",
        pool="quad",
        state=state,
        progress="step 4 of 9",
        submitted=submitted,
        reason=reason,
    )


@pytest.mark.parametrize(
    ("services", "jobs", "code"),
    [
        ((service("ready"),), (run("running"),), 0),
        ((service("paused"),), (run("stopped"),), 0),
        ((), (run("failed", submitted=True),), 0),
        ((service("starting"),), (), 4),
        ((service("absent"),), (), 4),
        ((), (run("failed"),), 4),
    ],
)
def test_the_exit_code_says_whether_all_is_as_declared(
    services: tuple[ServiceSeen, ...], jobs: tuple[RunSeen, ...], code: int
) -> None:
    assert StackSeen(stack="t", platform="gke", up=True, services=services, jobs=jobs).exit_code == code
    assert StackSeen(stack="t", platform="gke", up=False, services=services, jobs=jobs).exit_code == 3


def test_the_tables_hold_everything_and_the_reason_stands_below() -> None:
    seen = StackSeen(
        stack="t",
        platform="gke",
        up=True,
        pools=(POOL,),
        services=(service("failed", "DEPLOY_FAILED: FileNotFoundError: /m\n    there is no such folder"),),
        jobs=(run("pending", submitted=True, reason="pod a cannot be scheduled"),),
    )
    lines = shown(seen).splitlines()
    assert lines[0] == "stack t on gke"
    assert "quad  v6e 4x4  1      0 to 2" in lines
    assert "chat     quad  failed  0/2       http://127.0.0.1:8000/chat/v1" in lines
    assert "  chat: DEPLOY_FAILED: FileNotFoundError: /m" in lines
    assert "    there is no such folder" in lines
    assert "story  story-r1  quad  pending *  step 4 of 9" in lines
    assert "* submitted, not of the stack file" in lines
    assert lines[-1] == "  story: pod a cannot be scheduled"


def test_a_stack_that_is_not_up_says_why_and_nothing_of_its_parts() -> None:
    seen = StackSeen(stack="t", platform="gke", up=False, reason="never", services=(service("absent", "no such"),))
    assert shown(seen).startswith("stack t is not up: never\n")
    assert "no such" not in shown(seen)
