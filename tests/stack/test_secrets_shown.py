"""No mistake repeats a secret, in whatever form somebody wrote it."""

import json
from time import monotonic
from typing import Any

import pytest

from infra.stack import StackError, parse_stack
from infra.stack.plain import is_secret_name, text_without_secrets, without_secrets
from infra.stack.problems import Problem
from tests.render.stacks import GKE, config
from tests.stack.test_broken_files import FILES

CLEAR = "PLANTED"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_broken_file_has_its_secrets_told(path: Any) -> None:
    assert CLEAR not in path.with_suffix(".json").read_text()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("API_KEY=PLANTED", "API_KEY=[secret]"),
        ("A=1 API_KEY='PLANTED x' python x.py", "A=1 API_KEY=[secret] python x.py"),
        ("env: API_KEY=PLANTED", "env: API_KEY=[secret]"),
        ("api-key: PLANTED", "api-key: [secret]"),
        ('{"password": "PLANTED"}', '{"password": [secret]}'),
        ("redis://:PLANTED@r:1", "redis://[secret]@r:1"),
        ("redis://me:PLA/PLANTED@r:1", "redis://[secret]@r:1"),
        ("https://PLANTED@host/a", "https://[secret]@host/a"),
        ("me:PLANTED@r:1", "[secret]@r:1"),
        ("pad_token=</s>", "pad_token=</s>"),
        ("hf:https://huggingface.co/org/m@main", "hf:https://huggingface.co/org/m@main"),
        ("ghcr.io/me/tpu-ray:1@sha256:0123", "ghcr.io/me/tpu-ray:1@sha256:0123"),
        ("hf:org/m@v1.0", "hf:org/m@v1.0"),
        ("tpu-ray:pools", "tpu-ray:pools"),
    ],
)
def test_a_text_is_shown_without_the_secrets_in_it(text: str, shown: str) -> None:
    assert text_without_secrets(text) == shown
    assert text_without_secrets(shown) == shown
    assert without_secrets([text]) == [shown]


@pytest.mark.parametrize("text", ["a:", "//a:", "secret='", "--token ", "a", " ", "= "])
def test_a_long_text_takes_no_time(text: str) -> None:
    began = monotonic()
    without_secrets(text * 50_000)
    assert monotonic() - began < 20


def test_the_value_behind_a_flag_is_not_shown() -> None:
    assert without_secrets("x.py --api-key PLANTED --n 3") == "x.py --api-key [secret] --n 3"
    assert without_secrets(["--api-key", "PLANTED", "--n", "3"]) == ["--api-key", "[secret]", "--n", "3"]


def test_nothing_below_a_key_called_like_a_secret_is_shown() -> None:
    told = Problem(key="a.api_keys[0].deep", value="PLANTED", reason="x=API_KEY=PLANTED", nearest="API_KEY=PLANTED")
    (shown,) = StackError([told]).problems
    assert shown == Problem(key=told.key, value="[secret]", reason="x=API_KEY=[secret]")


@pytest.mark.parametrize(
    "name", ["pad_token", "eos-token", "BOS_TOKEN", "maskToken", "tokenizer", "max_tokens", "access_key_id"]
)
def test_words_of_a_tokenizer_and_others_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)
    engine = {"kind": "app", "import_path": "a:b", "args": {name: "</s>", "deep": [{name: 3}]}}
    assert parse_stack(config(services=[_service(engine), _trained()]))


@pytest.mark.parametrize("name", ["hf_token", "apiKey", "DB_PASSWORD", "passphrase", "access_key", "pad_token_secret"])
def test_other_words_are(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("written", ["PLANTED", 12345678, ["PLANTED"], [[12345678]], {"a": "PLANTED"}])
def test_a_variable_called_like_a_secret_is_one_mistake(written: object) -> None:
    jobs = [{"name": "train", "pool": "big", "env": {"WANDB_API_KEY": written}}]
    with pytest.raises(StackError) as caught:
        parse_stack(config(jobs=jobs))
    (problem,) = caught.value.problems
    assert problem.key == "tpu-ray:jobs[0].env.WANDB_API_KEY"
    assert problem.reason.startswith("this is called like a secret")
    assert CLEAR not in str(caught.value)
    assert "12345678" not in str(caught.value)


@pytest.mark.parametrize(
    "redis",
    [
        "redis://:PLANTED@r:1",
        ["redis://:PLANTED@r:1"],
        {"redis_address": "redis://me:12345PLANTED@r:1/0"},
        {"redis_address": "me:PLANTED@r:1"},
        {"redis_address": "r:1", "password_secret": "PLANTED" * 50},
        {"redis_address": "r:1", "password": ["PLANTED"]},
    ],
)
def test_a_login_of_redis_is_not_repeated(redis: object) -> None:
    with pytest.raises(StackError) as caught:
        parse_stack(config(platform={**GKE, "ray": {"gcs_fault_tolerance": redis}}))
    told = json.dumps([problem.model_dump(mode="json") for problem in caught.value.problems])
    assert "planted" not in told.lower()
    assert "12345" not in told


def _service(engine: object) -> dict[str, object]:
    return {"name": "mine", "pool": "small", "engine": engine}


def _trained() -> dict[str, object]:
    return {"name": "trained", "pool": "big", "model": "job:train"}
