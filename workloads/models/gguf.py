"""GGUF files of the llama architecture, converted once to the HF layout and kept in a cache. No jax.

llama.cpp stores q and k for interleaved rotary positions; HF, and this project, turn halves. So their rows are put back
into HF's order here.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from gguf.gguf_reader import ReaderField, ReaderTensor

from workloads.models.gguf_tokenizer import tokenizer_files
from workloads.models.hf import write_folder
from workloads.spec.decoder import LlamaConfig, ModelError, to_hf_config

CONVERTER = "1"
"""Part of the cache's key: a new number when what the conversion writes has changed."""
LOCK_TIMEOUT_S = 1800.0

TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
IGNORED = ("rope_freqs.weight",)


def cache_root() -> Path:
    """Folder of converted models: `$TPU_RAY_CACHE`, else `~/.cache/tpu-ray`, below it `models`."""
    set_by_user = os.environ.get("TPU_RAY_CACHE")
    return (Path(set_by_user) if set_by_user else Path.home() / ".cache" / "tpu-ray") / "models"


def converted_folder(path: Path) -> Path:
    """The HF folder of this .gguf, from the cache or made now. Several processes may ask at once: one converts.

    Raises:
        ModelError: no GGUF of the llama architecture, an unknown tokenizer, or another process converts for too long.
    """
    key = _key(path)
    root = cache_root()
    done = root / key
    if done.is_dir():
        return done
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / f"{key}.lock", path):
        if not done.is_dir():
            for left_over in root.glob(f".{key}.*"):  # of a process that died here: we hold its lock
                shutil.rmtree(left_over)
            unfinished = root / f".{key}.{os.getpid()}"
            try:
                convert(path, unfinished)
                unfinished.rename(done)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return done


def _key(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(CONVERTER.encode())
    return digest.hexdigest()[:24]


@contextmanager
def _locked(lock: Path, path: Path) -> Iterator[None]:
    with lock.open("w") as file:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ModelError(
                        f"the converted {path.name}",
                        f"another process has held {lock} for {LOCK_TIMEOUT_S:.0f} s",
                        "End that process and try again",
                    ) from None
                time.sleep(0.05)
        yield


def convert(path: Path, folder: Path) -> None:
    """Write the model of the .gguf file `path` into `folder`, in HF layout with its tokenizer and chat template.

    Quantised tensors become float32, which holds their values exactly; others keep their type.
    """
    try:
        reader = GGUFReader(path)
    except (OSError, ValueError, KeyError, IndexError) as why:
        raise ModelError(f"a GGUF model in {path}", f"unreadable: {why}", "Fetch the file again") from None
    fields = reader.fields
    architecture = text(fields, "general.architecture")
    if architecture != "llama":
        raise ModelError(f"architecture llama in {path}", f"{architecture}", "Use a model of the Llama family")
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = read_config(fields, tensors, path)
    converted = {}
    for name, tensor in tensors.items():
        if name not in IGNORED:
            hf_name, heads = _place(name, config, path)
            converted[hf_name] = _values(tensor, heads)
    extra = {
        f"{kind}_token_id": number(fields, f"tokenizer.ggml.{kind}_token_id", None)
        for kind in ("bos", "eos")
        if f"tokenizer.ggml.{kind}_token_id" in fields
    }
    folder.mkdir(parents=True)
    for file, content in tokenizer_files(fields, path).items():
        (folder / file).write_text(content, encoding="utf-8")
    (folder / "source.json").write_text(json.dumps({"file": path.name, "converter": CONVERTER}) + "\n")
    write_folder(folder, to_hf_config(config, extra), converted)


def read_config(fields: dict[str, ReaderField], tensors: dict[str, ReaderTensor], path: Path) -> LlamaConfig:
    """The sizes, from the file's metadata."""
    scaling = fields.get("llama.rope.scaling.type")
    if "rope_freqs.weight" in tensors or (scaling is not None and scaling.contents() != "none"):
        raise ModelError(f"plain rotary positions in {path}", "they are scaled", "Use a model without such scaling")
    width, heads = number(fields, "llama.embedding_length", path), number(fields, "llama.attention.head_count", path)
    head_dim = number(fields, "llama.attention.key_length", None, width // heads)
    turned = number(fields, "llama.rope.dimension_count", None, head_dim)
    if turned != head_dim:
        raise ModelError(f"rotary positions over whole heads in {path}", f"{turned} of {head_dim}", "Use a Llama model")
    return LlamaConfig(
        vocab=int(tensors["token_embd.weight"].shape[1]),
        width=width,
        layers=number(fields, "llama.block_count", path),
        heads=heads,
        kv_heads=number(fields, "llama.attention.head_count_kv", None, heads),
        head_dim=head_dim,
        mlp_width=number(fields, "llama.feed_forward_length", path),
        context=number(fields, "llama.context_length", path),
        rope_theta=float(fields["llama.rope.freq_base"].contents()) if "llama.rope.freq_base" in fields else 10_000.0,
        norm_eps=float(fields["llama.attention.layer_norm_rms_epsilon"].contents()),
        tie_embeddings="output.weight" not in tensors,
    )


def text(fields: dict[str, ReaderField], key: str) -> str | None:
    """A string of the metadata, None where it is absent."""
    return str(fields[key].contents()) if key in fields else None


def number(fields: dict[str, ReaderField], key: str, path: Path | None, default: int | None = None) -> int:
    """An integer of the metadata; without a default its absence is an error that names `path`."""
    if key in fields:
        return int(fields[key].contents())
    if default is None:
        raise ModelError(f"metadata {key} in {path}", "it is missing", "Convert the model again with llama.cpp")
    return default


def _place(name: str, config: LlamaConfig, path: Path) -> tuple[str, int | None]:
    """HF's name of a tensor, and the number of heads whose rows have to be put back in order (None: none have)."""
    if name in TENSORS:
        return TENSORS[name], None
    block, _, rest = name.partition(".")
    layer, _, part = rest.partition(".")
    part = part.removesuffix(".weight")
    if block != "blk" or part not in LAYER_TENSORS:
        raise ModelError(f"tensors of a Llama model in {path}", f"also {name}", "Use a plain model of the Llama family")
    heads = {"attn_q": config.heads, "attn_k": config.kv_heads}.get(part)
    return f"model.layers.{layer}.{LAYER_TENSORS[part]}.weight", heads


def _values(tensor: ReaderTensor, heads: int | None) -> np.ndarray:
    kind = tensor.tensor_type
    shape = tuple(int(side) for side in reversed(tensor.shape))
    if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
        values: np.ndarray[Any, Any] = np.array(tensor.data).reshape(shape)
    else:
        try:
            values = dequantize(tensor.data, kind).reshape(shape)
        except NotImplementedError:
            raise ModelError(f"tensor {tensor.name}", f"type {kind.name}", "Use another quantisation") from None
    return values if heads is None else unpermute(values, heads)


def unpermute(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k, `(heads * head_dim, width)`: from llama.cpp's pairs (2i, 2i+1) to HF's (i, i + head_dim/2)."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(rows.shape)
