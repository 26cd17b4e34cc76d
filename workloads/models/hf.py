"""Models on disk in the layout of Hugging Face: `config.json` and `model*.safetensors`. Pure numpy, no jax.

One tensor per layer there, `(out, in)`; ours are stacked on a layer axis, `(in, out)`, with heads as an own axis.
"""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (teaches numpy bfloat16, which safetensors then hands out)
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from workloads.spec.decoder import LlamaConfig, ModelError, from_hf_config, parameter_shapes, to_hf_config

Index = tuple[slice, ...]

WHOLE = {"embed": "model.embed_tokens.weight", "final_norm": "model.norm.weight", "head": "lm_head.weight"}
PER_LAYER = {
    "attn_norm": "input_layernorm",
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


FLOATS = ("F64", "F32", "F16", "BF16")
"""Types of weights, as safetensors names them; others are quantised and need scales that are not read."""


def hf_name(parameter: str, layer: int) -> str:
    """Name of the tensor that holds this parameter of this layer."""
    whole = WHOLE.get(parameter)
    return whole if whole is not None else f"model.layers.{layer}.{PER_LAYER[parameter]}.weight"


def to_hf_tensors(config: LlamaConfig, params: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors of HF's file. `params` by the names of `parameter_shapes`, on this host in full."""
    tensors = {}
    for name, shape in parameter_shapes(config).items():
        value = np.asarray(params[name])
        if value.shape != shape:
            raise ModelError(f"parameter {name} of shape {shape}", f"shape {value.shape}", "Save with its own config")
        if name in WHOLE:
            tensors[hf_name(name, 0)] = value
            continue
        for layer in range(config.layers):
            one = value[layer]
            if name in ("q", "k", "v"):
                one = one.reshape(config.width, -1)
            elif name == "o":
                one = one.reshape(-1, config.width)
            tensors[hf_name(name, layer)] = np.ascontiguousarray(one.T if one.ndim == 2 else one)
    return tensors


def write_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """Write `model.safetensors`, then `config.json`; each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".model.{os.getpid()}.safetensors"
    try:
        save_file(dict(tensors), unfinished, metadata={"format": "pt"})
        unfinished.chmod(0o644)  # safetensors makes it readable for its owner alone
        unfinished.replace(folder / "model.safetensors")
    finally:
        unfinished.unlink(missing_ok=True)
    draft = folder / f".config.{os.getpid()}.json"
    draft.write_text(json.dumps(config, indent=2) + "\n")
    draft.replace(folder / "config.json")


def save_hf(
    folder: str | Path, config: LlamaConfig, params: Mapping[str, Any], extra: Mapping[str, Any] | None = None
) -> None:
    """Write a model that `HfFolder` and transformers' LlamaForCausalLM read. Arrays must be whole on this host.

    `extra` goes into config.json: `bos_token_id`, `eos_token_id` ...
    """
    write_folder(Path(folder), to_hf_config(config, extra), to_hf_tensors(config, params))


class HfFolder:
    """An opened folder. Tensors are mapped, and only what is asked for is read."""

    def __init__(self, folder: str | Path) -> None:
        """Read config.json and the tensors' names and shapes.

        Raises:
            ModelError: a file or tensor is missing, damaged, of an unexpected shape, or the model is of another family.
        """
        self.folder = Path(folder)
        self.config = from_hf_config(read_json(self.folder / "config.json"))
        self._tensors: dict[str, Any] = {}
        with ExitStack() as stack:
            for path in self._files():
                try:
                    opened = stack.enter_context(safe_open(path, framework="numpy"))
                except (OSError, SafetensorError) as why:
                    raise ModelError(f"tensors in {path}", f"unreadable: {why}", "Fetch the file again") from None
                self._tensors |= {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            self._opened = stack.pop_all()
        self._check()

    def _files(self) -> list[Path]:
        index = self.folder / "model.safetensors.index.json"
        if index.is_file():
            return [self.folder / name for name in sorted(set(read_json(index)["weight_map"].values()))]
        files = sorted(self.folder.glob("*.safetensors"))
        if not files:
            found = ", ".join(sorted(p.name for p in self.folder.iterdir())[:8]) or "nothing"
            raise ModelError(f"*.safetensors in {self.folder}", f"found {found}", "Save the weights as safetensors")
        return files

    def _check(self) -> None:
        c = self.config
        expected = {hf_name(name, layer) for name in parameter_shapes(c) for layer in range(c.layers)}
        for name in sorted(self._tensors.keys() - expected):
            # Inside the model, what is not read would be left out of the sums: biases, scales of quantised weights.
            if name.startswith("model.") and not name.endswith("rotary_emb.inv_freq"):
                raise ModelError(
                    f"the tensors of a plain Llama in {self.folder}",
                    f"tensor {name}",
                    "This decoder has no use for it; take the model's unquantised release",
                )
        for name, shape in parameter_shapes(c).items():
            heads = {"q": c.heads, "k": c.kv_heads, "v": c.kv_heads}.get(name)
            if name in WHOLE or name.endswith("norm"):
                wanted = shape if name in WHOLE else shape[1:]
            elif heads is not None:
                wanted = (heads * c.head_dim, c.width)
            elif name == "o":
                wanted = (c.width, c.heads * c.head_dim)
            else:
                wanted = (shape[2], shape[1])
            for layer in range(1 if name in WHOLE else c.layers):
                tensor = self._tensors.get(hf_name(name, layer))
                found = None if tensor is None else tuple(tensor.get_shape())
                if tensor is not None and tensor.get_dtype() not in FLOATS:
                    raise ModelError(
                        f"tensor {hf_name(name, layer)} of type {', '.join(FLOATS)} in {self.folder}",
                        f"its type is {tensor.get_dtype()}",
                        "Take the model's unquantised release",
                    )
                if found != wanted:
                    raise ModelError(
                        f"tensor {hf_name(name, layer)} of shape {wanted} in {self.folder}",
                        "it is missing" if found is None else f"its shape is {found}",
                        "config.json and the weights must be of one model",
                    )

    def close(self) -> None:
        """Unmap the files."""
        self._tensors = {}
        self._opened.close()

    def __enter__(self) -> "HfFolder":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def read(self, name: str, index: Index | None = None, kv_heads: int | None = None) -> np.ndarray:
        """One parameter, or the part of it that `index` cuts out (slices of its `parameter_shapes` shape).

        With `kv_heads` the parameters `k` and `v` are those of `config.with_kv_heads(kv_heads)`: each head repeated.
        """
        c = self.config if kv_heads is None else self.config.with_kv_heads(kv_heads)
        shape = parameter_shapes(c)[name]
        cut = tuple(slice(*part.indices(side)) for part, side in zip(index or (), shape, strict=index is not None))
        cut = cut or tuple(slice(0, side) for side in shape)
        if name in WHOLE:
            return np.asarray(self._tensors[hf_name(name, 0)][cut])
        layers = range(cut[0].start, cut[0].stop)
        if not layers:
            return np.zeros((0, *(part.stop - part.start for part in cut[1:])), np.float32)
        return np.stack([self._read_layer(name, layer, cut[1:], c.kv_heads) for layer in layers])

    def _read_layer(self, name: str, layer: int, cut: Index, kv_heads: int) -> np.ndarray:
        tensor = self._tensors[hf_name(name, layer)]
        dim = self.config.head_dim
        if name in ("q", "k", "v"):
            width, heads, dims = cut
            repeat = 1 if name == "q" else kv_heads // self.config.kv_heads
            first, last = heads.start // repeat, -(-heads.stop // repeat)
            part = np.asarray(tensor[first * dim : last * dim, width]).reshape(last - first, dim, -1)
            repeated = np.repeat(part, repeat, axis=0)[heads.start - first * repeat : heads.stop - first * repeat]
            return repeated[:, dims].transpose(2, 0, 1)
        if name == "o":
            heads, dims, width = cut
            part = np.asarray(tensor[width, heads.start * dim : heads.stop * dim])
            return part.T.reshape(heads.stop - heads.start, dim, -1)[:, dims]
        if name.endswith("norm"):
            return np.asarray(tensor[cut])
        return np.asarray(tensor[cut[1], cut[0]]).T


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a model's folder, or a ModelError that names the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as why:
        raise ModelError(f"file {path}", why.strerror or str(why), "A model's folder in HF layout has it") from None
    except ValueError as why:
        raise ModelError(f"JSON in {path}", f"unreadable: {why}", "Fetch the file again") from None
    if not isinstance(found, dict):
        raise ModelError(f"a JSON object in {path}", type(found).__name__, "Fetch the file again")
    return found
