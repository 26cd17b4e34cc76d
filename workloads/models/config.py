"""Shape of a Llama-family model, and its HF `config.json`: what a preview knows of them too, from the spec."""

from workloads.spec.decoder import LlamaConfig, ModelError, from_hf_config, parameter_shapes, to_hf_config

__all__ = ["LlamaConfig", "ModelError", "from_hf_config", "parameter_shapes", "to_hf_config"]
