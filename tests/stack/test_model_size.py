"""How large a model is: read where it lies on this machine, and said to be unknown with its reason everywhere else."""

import json
import sys
from pathlib import Path

import pytest

from infra.stack.model_size import served_size, size_here, trained_size
from workloads.spec import JobSpec
from workloads.spec.decoder import LlamaConfig, to_hf_config
from workloads.spec.job import ModelSpec

CONFIG = LlamaConfig(128256, 4096, 32, 32, 8, 128, 14336, 8192, tie_embeddings=False)


def folder(path: Path, **changes: object) -> Path:
    path.mkdir(parents=True)
    found = {name: value for name, value in {**to_hf_config(CONFIG), **changes}.items() if value is not None}
    (path / "config.json").write_text(json.dumps(found))
    return path


def test_a_folder_says_its_sizes_by_config_json(tmp_path: Path) -> None:
    assert size_here(str(folder(tmp_path / "model"))) == CONFIG


def test_a_folder_right_below_counts_too(tmp_path: Path) -> None:
    folder(tmp_path / "model" / "snapshot")
    assert size_here(str(tmp_path / "model")) == CONFIG


def test_what_config_json_leaves_out_is_what_the_engine_takes_for_it(tmp_path: Path) -> None:
    bare = size_here(str(folder(tmp_path / "model", num_key_value_heads=None, head_dim=None, tie_word_embeddings=None)))
    assert isinstance(bare, LlamaConfig)
    assert (bare.kv_heads, bare.head_dim, bare.tie_embeddings) == (32, 128, False)


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "a_model_of_ours")
    (tmp_path / "a_model_of_ours" / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert size_here("package:a_model_of_ours") == CONFIG
    assert "a_model_of_ours" not in sys.modules


def test_a_gguf_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "a .gguf file" in str(size_here(str(tmp_path / "model.gguf")))
    assert "a .gguf file" in str(size_here(str(tmp_path)))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("package:no_such_package_of_ours", "not installed"),
        ("package:os.path", "not installed"),
        ("gs://bucket/model", "in a bucket"),
        ("/no/such/folder", "not on this machine"),
        ("job:gone", "no such job"),
        ("~nobody-here/model", "not on this machine"),
        ("a\0b", "not on this machine"),
    ],
)
def test_what_is_not_here_is_not_known(model: str, why: str) -> None:
    assert why in str(size_here(model))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}, "Qwen3ForCausalLM"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "type llama3"),
        ({"vocab_size": None}, "'vocab_size'"),
        ({"vocab_size": "many"}, "cannot be read"),
        ({"vocab_size": 0}, "not above 0"),
        ({"num_attention_heads": 0}, "not above 0"),
        ({"hidden_size": [1]}, "cannot be read"),
        ({"rope_scaling": 3}, "cannot be read"),
    ],
)
def test_what_the_engine_could_not_load_is_not_known_either(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    assert why in str(size_here(str(folder(tmp_path / "model", **changes))))


@pytest.mark.parametrize("text", ["", "[]", "{", "\udcff", "[" * 100_000])
def test_odd_files_are_told_and_never_raise(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert str(tmp_path) in str(size_here(str(tmp_path)))


def test_a_job_says_the_size_of_its_own_model() -> None:
    job = JobSpec(name="story", pool="p", model=ModelSpec(layers=5))

    def nowhere(model: str) -> str:
        return f"asked for {model}"

    found = served_size("job:story", [job], nowhere)
    assert isinstance(found, LlamaConfig)
    assert (found.layers, found.vocab, found) == (5, 272, trained_size(job))
    assert served_size("job:other", [job], nowhere) == "asked for job:other"
    assert isinstance(trained_size(JobSpec(name="x", pool="p", model=ModelSpec(heads=8, kv_heads=3))), str)
