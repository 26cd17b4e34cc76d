"""What clients get: answers, streams, usage, logprobs, and one envelope for every error."""

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.serve.conftest import CONTEXT, Running, Serve, write_tokenizer
from workloads.models.tokenizer import Tokenizer


def error_of(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return error


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_chat(serve: Serve) -> None:
    running = serve("Paris.")
    answer = running.chat(return_token_ids=True).json()
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Paris.", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert len(choice["token_ids"]) == 7, "the end token is a generated token"
    prompt = len("[user]hi>")
    assert len(answer["prompt_token_ids"]) == prompt
    assert answer["usage"] == {"prompt_tokens": prompt, "completion_tokens": 7, "total_tokens": prompt + 7}
    assert answer["object"] == "chat.completion"
    assert answer["id"] != running.chat().json()["id"]


def test_completion_defaults_to_sixteen_tokens(serve: Serve) -> None:
    answer = serve().complete().json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 16
    assert len(answer["choices"][0]["text"]) == 16


def test_chat_fills_the_context(serve: Serve) -> None:
    assert serve().chat().json()["usage"]["total_tokens"] == CONTEXT


def test_completion_takes_token_ids(serve: Serve, tokenizer: Tokenizer) -> None:
    running = serve()
    by_ids = running.complete(prompt=tokenizer.encode("hello")).json()["choices"]
    assert by_ids == running.complete(prompt="hello").json()["choices"]
    assert by_ids == running.complete(prompt=["hello"]).json()["choices"]


def test_sampling_reaches_the_engine(serve: Serve, tokenizer: Tokenizer) -> None:
    running = serve()
    running.chat(temperature=0.5, top_p=0.9, top_k=3, seed=7, max_completion_tokens=2, stop_token_ids=[5])
    running.chat(temperature=0, max_tokens=3, ignore_eos=True, top_k=-1)
    running.chat(max_tokens=1, n=1, logit_bias={}, presence_penalty=0.0, response_format={"type": "text"}, user="me")
    first, second, third = (sampling for _, _, sampling in running.hosts.engine.added)
    assert (first.temperature, first.top_p, first.top_k, first.seed, first.max_tokens) == (0.5, 0.9, 3, 7, 2)
    assert first.stop_token_ids == {5} | tokenizer.eos_token_ids
    assert (second.temperature, second.top_k, second.stop_token_ids) == (0, 0, frozenset())
    assert (third.temperature, third.top_p) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -1),
        ("temperature", 2.1),
        ("temperature", "hot"),
        ("temperature", True),
        ("top_p", 0),
        ("top_p", 1.1),
        ("top_k", -2),
        ("seed", 1.5),
        ("max_tokens", 0),
        ("max_tokens", "4"),
        ("max_completion_tokens", 0),
        ("stop", ""),
        ("stop", 5),
        ("stop", ["a"] * 17),
        ("n", 2),
        ("n", "1"),
        ("logit_bias", {"5": 1}),
        ("presence_penalty", 0.5),
        ("frequency_penalty", 0.5),
        ("repetition_penalty", 1.1),
        ("min_p", 0.1),
        ("tools", [{"type": "function"}]),
        ("tool_choice", "required"),
        ("response_format", {"type": "json_object"}),
        ("top_logprobs", 2),
        ("logprobs", 1),
        ("stream_options", {"include_usage": True}),
        ("stream", "yes"),
        ("messages", []),
        ("messages", "hi"),
        ("model", 5),
        ("no_such_field", 1),
    ],
)
def test_a_bad_value_is_refused_before_the_engine(serve: Serve, field: str, value: object) -> None:
    running = serve()
    error = error_of(running.chat(**{field: value}), 400)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == field
    assert running.hosts.engine.added == []
    assert running.http.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [[1], [2]]}, "prompt"),
        ({"prompt": [100000]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"logprobs": 2}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"echo": True}, "echo"),
        ({"best_of": 2}, "best_of"),
        ({"suffix": "x"}, "suffix"),
    ],
)
def test_bad_completions(serve: Serve, body: dict[str, object], param: str) -> None:
    running = serve()
    assert error_of(running.complete(**body), 400)["param"] == param
    assert running.hosts.engine.added == []


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "king", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}], "messages[1].role"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages[0].content"),
        ([{"role": "assistant", "content": "x"}], "messages"),
    ],
)
def test_bad_messages(serve: Serve, messages: list[object], param: str) -> None:
    found = error_of(serve().chat(messages=messages), 400)["param"]
    assert found.startswith(param)


def test_missing_fields_and_broken_json(serve: Serve) -> None:
    http = serve().http
    assert error_of(http.post("/v1/chat/completions", json={"model": "m"}), 400)["param"] == "messages"
    assert error_of(http.post("/v1/completions", json={"prompt": "x"}), 400)["param"] == "model"
    assert "JSON" in error_of(http.post("/v1/completions", content="{"), 400)["message"]
    assert error_of(http.post("/v1/completions", content="[1]"), 400)["param"] is None
    assert error_of(http.post("/v1/completions", content=b"\xff"), 400)["param"] is None
    assert error_of(http.post("/v1/completions", content=""), 400)["param"] is None


def test_unknown_model_route_and_method(serve: Serve) -> None:
    running = serve()
    error = error_of(running.chat(model="gpt-4"), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert error_of(running.http.get("/v1/models/gpt-4"), 404)["code"] == "model_not_found"
    assert error_of(running.http.get("/v2/x"), 404)["code"] == "unknown_url"
    assert error_of(running.http.get("/v1/models/"), 404)["code"] in ("unknown_url", "model_not_found")
    refused = running.http.get("/v1/chat/completions")
    assert error_of(refused, 405)["code"] == "method_not_allowed"
    assert refused.headers["allow"] == "POST"


def test_models(serve: Serve) -> None:
    running = serve()
    assert [model.id for model in running.openai.models.list()] == ["m"]
    assert running.openai.models.retrieve("m").id == "m"


@pytest.mark.parametrize("body", [{"prompt": "x" * 65}, {"prompt": "x" * 64}, {"prompt": "xx", "max_tokens": 63}])
def test_context_overflow(serve: Serve, body: dict[str, object]) -> None:
    error = error_of(serve().complete(**body), 400)
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "prompt"
    assert str(CONTEXT) in error["message"]


def test_the_context_can_be_used_to_the_last_token(serve: Serve) -> None:
    assert serve().complete(prompt="xx", max_tokens=62).json()["usage"]["total_tokens"] == CONTEXT


def test_no_chat_template(serve: Serve, tmp_path: Path) -> None:
    running = serve(codec=Tokenizer(write_tokenizer(tmp_path, template=None)))
    error = error_of(running.chat(), 400)
    assert "/v1/completions" in error["message"]
    assert running.complete().status_code == 200


def test_stop_strings(serve: Serve) -> None:
    running = serve("one two three")
    plain = running.chat(stop="two").json()["choices"][0]
    assert (plain["message"]["content"], plain["finish_reason"]) == ("one ", "stop")
    several = running.chat(stop=["zzz", "hre", "thr"]).json()["choices"][0]
    assert several["message"]["content"] == "one two "
    begun = running.chat(stop=["three!"]).json()["choices"][0]
    assert begun["message"]["content"] == "one two three", "what only looked like a stop string is given in the end"
    assert begun["finish_reason"] == "stop"
    assert len(running.hosts.engine.cancelled) == 2, "a request that was cut frees its place"


def test_streams_say_the_same_as_whole_answers(serve: Serve) -> None:
    text = "naïve 漢字 🎉 end"
    running = serve(text)
    for stop in (None, "🎉", ["en"], "d"):
        body = {"stop": stop, "logprobs": True, "return_token_ids": True}
        whole = running.chat(**body).json()
        chunks = events_of(running.chat(stream=True, stream_options={"include_usage": True}, **body))
        assert len({chunk["id"] for chunk in chunks}) == 1
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"] == whole["usage"]
        assert all(chunk["usage"] is None for chunk in chunks[:-1])
        choices = [chunk["choices"][0] for chunk in chunks[:-1]]
        assert "".join(c["delta"].get("content", "") for c in choices) == whole["choices"][0]["message"]["content"]
        assert [c["finish_reason"] for c in choices if c["finish_reason"]] == [whole["choices"][0]["finish_reason"]]
        entries = [entry for c in choices if c["logprobs"] for entry in c["logprobs"]["content"]]
        assert entries == whole["choices"][0]["logprobs"]["content"]
        assert [t for c in choices for t in c["token_ids"]] == whole["choices"][0]["token_ids"]
        assert "\ufffd" not in json.dumps(choices, ensure_ascii=False).replace('"token": "\ufffd"', "")


def test_a_streamed_completion_says_its_prompt_tokens_once(serve: Serve) -> None:
    running = serve("some words")
    whole = running.complete(return_token_ids=True).json()
    chunks = events_of(running.complete(stream=True, return_token_ids=True))
    assert [chunk.get("prompt_token_ids") for chunk in chunks[:2]] == [whole["prompt_token_ids"], None]
    assert all("prompt_token_ids" not in chunk for chunk in chunks[1:])


def test_an_answer_can_be_sent_back_as_the_client_gives_it(serve: Serve) -> None:
    running = serve("Paris.")
    asked = [{"role": "user", "content": "hi"}]
    answer = running.openai.chat.completions.create(model="m", messages=asked)  # type: ignore[arg-type]
    said = answer.choices[0].message
    running.openai.chat.completions.create(
        model="m",
        messages=[*asked, said, {"role": "user", "content": "and?"}],  # type: ignore[list-item]
    )
    extra: dict[str, Any] = {"audio": None, "annotations": [], "tool_calls": None, "function_call": None}
    assert running.chat(messages=[*asked, {**said.model_dump(), **extra}]).status_code == 200
    for wrong in ({"tool_calls": [{"id": "1"}]}, {"refusal": "no"}, {"annotations": [1]}):
        answered = running.chat(messages=[*asked, {"role": "assistant", "content": "x", **wrong}])
        assert error_of(answered, 400)["param"] == f"messages[1].{next(iter(wrong))}"


def test_an_unfinished_character_at_the_end_is_shown_as_such(serve: Serve) -> None:
    answer = serve("a漢").complete(max_tokens=2).json()["choices"][0]
    assert answer["text"] == "a\ufffd"
    assert answer["finish_reason"] == "length"


def test_logprobs(serve: Serve) -> None:
    running = serve("abc")
    chat = running.chat(logprobs=True, max_tokens=2).json()["choices"][0]["logprobs"]["content"]
    assert chat == [{"token": letter, "logprob": -0.25, "bytes": [ord(letter)], "top_logprobs": []} for letter in "ab"]
    plain = running.complete(logprobs=0, max_tokens=2).json()["choices"][0]["logprobs"]
    assert plain["tokens"] == ["a", "b"]
    assert plain["token_logprobs"] == [-0.25, -0.25]
    assert plain["text_offset"] == [0, 1]
    assert running.chat(logprobs=False).json()["choices"][0]["logprobs"] is None


def test_the_openai_client(serve: Serve) -> None:
    running = serve("Paris, of course.")
    messages: Any = [{"role": "user", "content": "What is the capital of France?"}]
    whole = running.openai.chat.completions.create(model="m", messages=messages, temperature=0)
    assert whole.choices[0].message.content == "Paris, of course."
    with running.openai.chat.completions.create(
        model="m", messages=messages, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Paris, of course."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage == whole.usage
    plain = running.openai.completions.create(model="m", prompt="x", stream=True)
    assert "".join(c.choices[0].text for c in plain) == "Paris, of course"[:16]
    with pytest.raises(openai.BadRequestError) as refused:
        running.openai.chat.completions.create(model="m", messages=messages, n=2)
    assert refused.value.param == "n"
    with pytest.raises(openai.NotFoundError):
        running.openai.chat.completions.create(model="other", messages=messages)


def test_nothing_runs_while_nobody_asks(serve: Serve) -> None:
    running: Running = serve("abc")
    running.chat()
    steps = len(running.hosts.steps)
    for _ in range(20):
        assert running.http.get("/health").json()["open_requests"] == 0
    assert len(running.hosts.steps) == steps
    assert running.hosts.steps == list(range(1, steps + 1))
