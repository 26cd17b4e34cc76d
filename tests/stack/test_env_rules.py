"""Which variables a service and a job may have, and that a secret written in clear is repeated nowhere."""

from typing import Any

import pytest

from infra.stack import StackError, parse_stack
from tests.render.stacks import config
from workloads.spec import SecretKey

CLEAR = "sk-PLANTED"
KEY = {"secret": "keys", "key": "wandb"}
POOLS = [{"name": "small", "generation": "v6e", "topology": "2x2", "slices": 2}]


def stack(service: dict[str, Any] | None = None, job: dict[str, Any] | None = None) -> dict[str, Any]:
    services = [{"name": "chat", "pool": "small", "model": "/models/a", **(service or {})}]
    return config(pools=POOLS, services=services, jobs=[{"name": "train", "pool": "small", **(job or {})}])


def test_a_variable_by_reference() -> None:
    parsed = parse_stack(stack({"secret_env": {"API_KEY": KEY}}, {"secret_env": {"WANDB_API_KEY": KEY}}))
    assert parsed.services[0].secret_env == {"API_KEY": SecretKey(secret="keys", key="wandb")}
    assert parsed.jobs[0].secret_env == {"WANDB_API_KEY": SecretKey(secret="keys", key="wandb")}


# What is written, the key that is wrong, and words of the reason.
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"API_KEY": CLEAR}, "API_KEY", "must be a mapping"),
    ({"API_KEY": {"secret": f"{CLEAR}_1", "key": "a"}}, "API_KEY.secret", "a Kubernetes secret's name"),
    ({"API_KEY": {"secret": "keys", "key": f"{CLEAR}/"}}, "API_KEY.key", "a key of a Kubernetes secret"),
    ({"API_KEY": {"secret": "keys"}}, "API_KEY.key", "required and missing"),
    ({"API_KEY": {"key": "wandb"}}, "API_KEY.secret", "required and missing"),
    ({"API_KEY": {**KEY, "value": CLEAR}}, "API_KEY.value", "no such key"),
    ({"API-KEY": KEY}, "API-KEY", "letters, digits and underscores"),
    ({"TPU_WORKER_ID": KEY}, "TPU_WORKER_ID", "says this itself"),
    ({"API_KEY": {"secure": CLEAR}}, "API_KEY", "the Kubernetes secret"),
]


@pytest.mark.parametrize("kind", ["service", "job"])
@pytest.mark.parametrize(("written", "key", "reason"), WRONG, ids=[key for _, key, _ in WRONG])
def test_a_mistake_is_told_and_no_secret_with_it(written: dict[str, Any], key: str, reason: str, kind: str) -> None:
    with pytest.raises(StackError) as caught:
        parse_stack(stack(**{kind: {"secret_env": written}}))
    (problem,) = caught.value.problems
    assert problem.key == f"tpu-ray:{kind}s[0].secret_env.{key}"
    assert reason in problem.reason
    assert CLEAR not in str(caught.value)


def test_a_text_in_place_of_all_variables_is_not_repeated() -> None:
    with pytest.raises(StackError) as caught:
        parse_stack(stack(job={"secret_env": CLEAR}))
    assert CLEAR not in str(caught.value)


def test_a_variable_stands_in_one_place() -> None:
    with pytest.raises(StackError) as caught:
        parse_stack(stack(job={"env": {"MODE": "a"}, "secret_env": {"MODE": KEY}}))
    (problem,) = caught.value.problems
    assert problem.key == "tpu-ray:jobs[0].secret_env.MODE"
    assert problem.reason == "tpu-ray:jobs[0].env has this variable too"


def test_a_plain_variable_called_like_a_secret_is_sent_to_the_others() -> None:
    with pytest.raises(StackError) as caught:
        parse_stack(stack(job={"env": {"WANDB_API_KEY": CLEAR}}))
    assert "tpu-ray:jobs[0].secret_env.WANDB_API_KEY: {secret:" in str(caught.value)
    assert CLEAR not in str(caught.value)


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_what_ray_serve_llm_would_show_has_a_key_of_its_own(name: str) -> None:
    written = {"engine": "vllm", "model": "hf:acme/small", "secret_env": {name: KEY}}
    with pytest.raises(StackError, match="tpu-ray:hubToken"):
        parse_stack(stack(written))
    assert parse_stack(stack({**written, "secret_env": {"OTHER": KEY}})).services[0].secret_env
