"""A tiny random model in HF layout, for any number of devices up to 8 heads."""

import json
from pathlib import Path

import numpy as np

from tests.serve.conftest import write_tokenizer
from workloads.models.hf import save_hf
from workloads.spec.decoder import LlamaConfig, parameter_shapes

CONFIG = LlamaConfig(vocab=264, width=64, layers=2, heads=8, kv_heads=4, head_dim=8, mlp_width=96, context=128)


def write_tiny_model(folder: Path) -> Path:
    """Weights from a fixed seed; large enough that no two tokens are nearly as likely."""
    random = np.random.default_rng(5)
    params = {
        name: np.ones(shape, np.float32) if "norm" in name else random.normal(0, 0.3, shape).astype(np.float32)
        for name, shape in parameter_shapes(CONFIG).items()
    }
    end = json.loads((write_tokenizer(folder) / "tokenizer.json").read_text())["added_tokens"][0]["id"]
    save_hf(folder, CONFIG, params, {"eos_token_id": end})
    return folder
