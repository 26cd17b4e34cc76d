"""The trained model as a folder that a service reads: HF layout, tokenizer, and export.json, which is written last."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from etils import epath  # type: ignore[import-untyped]
from jax.experimental import multihost_utils

from workloads.data.tokens import END, PAD, write_tokenizer
from workloads.models.hf import save_hf
from workloads.spec.decoder import LlamaConfig
from workloads.whole_file import write_whole


def export(folder: epath.Path, config: LlamaConfig, params: Mapping[str, jax.Array], facts: dict[str, Any]) -> None:
    """Write the model and then export.json with `facts` (`step` and the losses). All processes call it together."""
    # One parameter at a time: the whole model need not fit a device twice.
    whole = {name: np.asarray(multihost_utils.process_allgather(value, tiled=True)) for name, value in params.items()}
    if jax.process_index() == 0:
        marker = folder / "export.json"
        marker.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        save_hf(Path(folder), config, whole, {"eos_token_id": END, "pad_token_id": PAD})
        write_tokenizer(Path(folder), config.context)
        write_whole(marker, json.dumps(facts, indent=2))
    multihost_utils.sync_global_devices("exported")
