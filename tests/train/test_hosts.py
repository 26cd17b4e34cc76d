"""A process that is not where it should be says so, instead of training on the wrong devices."""

import os

import pytest

from workloads.spec.slices import resolve_slice
from workloads.train.hosts import Host, NotOneSlice, check_devices, check_hosts, gather_hosts

SLICE = resolve_slice("v6e", "4x4")


def test_hosts_of_one_slice() -> None:
    check_hosts([Host("a", n) for n in (2, 0, 3, 1)], SLICE)


@pytest.mark.parametrize(
    "hosts",
    [
        [Host("a", 0), Host("a", 1), Host("b", 2), Host("b", 3)],
        [Host("a", 0), Host("a", 1), Host("a", 1), Host("a", 3)],
        [Host("a", 0), Host("a", 1)],
    ],
)
def test_hosts_of_no_slice(hosts: list[Host]) -> None:
    with pytest.raises(NotOneSlice, match="one v6e 4x4 slice"):
        check_hosts(hosts, SLICE)


def test_a_host_without_chips_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No silent fall-back to the CPU: jax issue 10192."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    with pytest.raises(NotOneSlice, match="wanted TPU devices, found backend 'cpu'"):
        check_devices(resolve_slice("v6e", "1x1"))


def test_a_wrong_number_of_devices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(NotOneSlice, match="wanted the 16 devices of a v6e 4x4 slice, found 1 over 1 processes"):
        check_devices(SLICE)


def test_one_process_gathers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_NAME", "train-0")
    monkeypatch.setenv("TPU_WORKER_ID", "3")
    assert gather_hosts() == [Host("train-0", 3, os.getpid())]
