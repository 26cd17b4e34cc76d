"""How what the engine reports is put into words."""

import pytest

from infra.automation.watch import command_failure, failure, plain, resource_name
from infra.cli.outcome import what_runs

TRACEBACK = """Traceback (most recent call last):
  File "/x/pulumi/dynamic/__main__.py", line 84, in wrapper
    return fn(self, request, context)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/x/y.py", line 5, in create
    raise {raised}
{end}"""


@pytest.mark.parametrize(
    ("urn", "name"),
    [
        ("urn:pulumi:local::tpu-ray::pulumi-python:dynamic/tpu-ray:Ready::chat", "Ready chat"),
        ("urn:pulumi:local::tpu-ray::a:b:C$gcp:container/nodePool:NodePool::big-0", "NodePool big-0"),
        ("urn:pulumi:local::tpu-ray::pulumi:pulumi:Stack::tpu-ray-local", ""),
        ("not a urn", "not a urn"),
    ],
)
def test_resources_are_named_by_kind_and_name(urn: str, name: str) -> None:
    assert resource_name(urn) == name


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (
            "infra.x.errors.PortTaken: port 8000 is taken\nnext: choose another",
            "port 8000 is taken\nnext: choose another",
        ),
        ("Exception: no slice\n\nwanted: 4x4", "no slice\n\nwanted: 4x4"),
        ("RuntimeError: wanted 4, found 2", "wanted 4, found 2"),
        ("KeyError: 'pool'", "KeyError: 'pool'"),
        ("AssertionError", "AssertionError"),
    ],
)
def test_of_a_traceback_the_exceptions_own_words_are_the_reason(end: str, reason: str) -> None:
    text = TRACEBACK.format(raised="X", end=end)
    found = failure("Ready chat", text)
    assert (found.resource, found.reason, found.details) == ("Ready chat", reason, text)


def test_of_a_chain_the_last_exception_counts() -> None:
    first = TRACEBACK.format(raised="A", end="KeyError: 1")
    second = TRACEBACK.format(raised="B", end="infra.x.Late: gave up after 30 s")
    chain = f"{first}\n\nThe above exception was the direct cause of the following exception:\n\n{second}"
    assert failure("", chain).reason == "gave up after 30 s"


def test_a_message_that_is_no_traceback_is_the_reason_itself() -> None:
    found = failure("", "tpu-ray:pools[0]: wrong")
    assert (found.reason, found.details) == ("tpu-ray:pools[0]: wrong", "")


def test_colours_and_transport_words_are_taken_off() -> None:
    assert plain("\x1b[31merror: \x1b[0mException calling application: no place\n") == "no place"
    assert plain("<{%reset%}>still there<{%reset%}>") == "still there"


def test_a_failed_command_is_told_in_its_own_words() -> None:
    text = "\n code: 255\n stdout: \n stderr: warning: old\nerror: incorrect passphrase\n  try another"
    assert command_failure(RuntimeError(text)).reason == "incorrect passphrase\n  try another"
    assert command_failure(RuntimeError("nothing known")).reason == "nothing known"


def test_what_runs_is_told_from_the_outputs_that_are_there() -> None:
    outputs = {
        "endpoints": {"chat": "http://127.0.0.1:8000/chat/v1"},
        "jobs": {"train": {"status": "RUNNING"}},
        "dashboard": "http://127.0.0.1:8265",
        "curl": "curl -s http://127.0.0.1:8000/chat/v1/models",
    }
    text = "\n".join(what_runs(outputs))
    for shown in ("chat ", "http://127.0.0.1:8000/chat/v1", "status RUNNING", "http://127.0.0.1:8265"):
        assert shown in text
    # The line can be pasted: nothing stands before or after it.
    assert text.splitlines()[-1] == outputs["curl"]
    assert what_runs({}) == []
