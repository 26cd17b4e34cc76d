"""Small models with random weights, as HF folders and as .gguf files."""

from pathlib import Path

import gguf
import numpy as np

from workloads.models.hf import save_hf, to_hf_tensors
from workloads.spec.decoder import LlamaConfig, parameter_shapes

CONFIG = LlamaConfig(
    vocab=300, width=64, layers=2, heads=8, kv_heads=4, head_dim=8, mlp_width=96, context=320, tie_embeddings=False
)
LETTERS = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
"""The 256 signs that byte-level BPE writes bytes with."""


def weights(config: LlamaConfig = CONFIG, seed: int = 0) -> dict[str, np.ndarray]:
    """Random float32 weights, large enough that tokens differ clearly in their scores."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in parameter_shapes(config).items():
        values = rng.standard_normal(shape).astype(np.float32)
        found[name] = 1 + 0.1 * values if name.endswith("norm") else 0.2 * values
    return found


def hf_folder(folder: Path, config: LlamaConfig = CONFIG) -> Path:
    save_hf(folder, config, weights(config))
    return folder


def gguf_file(path: Path, config: LlamaConfig = CONFIG, pre: str = "smollm", architecture: str = "llama") -> Path:
    """The same weights as llama.cpp's converter would write them: q and k permuted for interleaved rope; one Q8_0."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.layers)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.mlp_width)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    tokens = ["<|end|>", "<|user|>", *LETTERS, "th", "the"]
    tokens += [f"<unused{i}>" for i in range(config.vocab - len(tokens))]
    writer.add_token_list(tokens)
    control = gguf.TokenType.CONTROL
    writer.add_token_types([control if token.startswith("<") and len(token) > 1 else 1 for token in tokens])
    writer.add_token_merges(["t h", "th e"])
    writer.add_eos_token_id(0)
    writer.add_chat_template("{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}<|end|>")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = {
        "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    }  # fmt: skip
    for full, value in to_hf_tensors(config, weights(config)).items():
        name = full.removesuffix(".weight")
        if name in names:
            place = names[name]
        else:
            _, _, layer, part = name.split(".", 3)
            place = f"blk.{layer}.{parts[part]}"
            heads = {"self_attn.q_proj": config.heads, "self_attn.k_proj": config.kv_heads}.get(part)
            if heads is not None:  # as convert_hf_to_gguf.py's LlamaModel.permute
                value = value.reshape(heads, 2, config.head_dim // 2, -1).swapaxes(1, 2).reshape(value.shape)
        if place == "output":
            quantized = gguf.quants.quantize(value, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor("output.weight", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(f"{place}.weight", np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
