"""Shape of a Llama-family model, and its HF `config.json`. Pure: no jax."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workloads.spec.job import ModelSpec

BYTE_VOCABULARY = 272
"""Rows of a trained model's embedding: the 258 tokens of the bundled tokenizer (256 bytes and two specials), rounded up
to a multiple of 16, so that a mesh can divide it."""


class ModelError(ValueError):
    """A model that cannot be used. The text says what was looked for, what was found, and what to do next."""

    def __init__(self, wanted: str, found: str, next_step: str) -> None:
        super().__init__(f"{wanted}: {found}. {next_step}")
        self.wanted, self.found, self.next_step = wanted, found, next_step


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of the decoder. `width` is the residual stream, `mlp_width` the hidden layer of the gated MLP.

    `heads` must be a multiple of `kv_heads`; `head_dim` is even (half-rotation rope).
    """

    vocab: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    context: int
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ModelError(
                "heads is a multiple of kv_heads",
                f"{self.heads} heads, {self.kv_heads} KV heads",
                "Choose kv_heads among the divisors of heads",
            )
        if self.head_dim % 2:
            raise ModelError("head_dim is even", f"{self.head_dim}", "Rotary positions turn pairs of numbers")

    @property
    def group(self) -> int:
        """Query heads per KV head."""
        return self.heads // self.kv_heads

    def with_kv_heads(self, kv_heads: int) -> "LlamaConfig":
        """The same model with its KV heads repeated, for tensor parallelism beyond their number."""
        return replace(self, kv_heads=kv_heads)

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(_product(shape) for shape in parameter_shapes(self).values())


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for side in shape:
        total *= side
    return total


def parameter_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Every parameter by name. Those of the layers have a leading layer axis."""
    c = config
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (c.vocab, c.width),
        "attn_norm": (c.layers, c.width),
        "q": (c.layers, c.width, c.heads, c.head_dim),
        "k": (c.layers, c.width, c.kv_heads, c.head_dim),
        "v": (c.layers, c.width, c.kv_heads, c.head_dim),
        "o": (c.layers, c.heads, c.head_dim, c.width),
        "mlp_norm": (c.layers, c.width),
        "gate": (c.layers, c.width, c.mlp_width),
        "up": (c.layers, c.width, c.mlp_width),
        "down": (c.layers, c.mlp_width, c.width),
        "final_norm": (c.width,),
    }
    if not c.tie_embeddings:
        shapes["head"] = (c.vocab, c.width)
    return shapes


def trained_config(model: ModelSpec) -> LlamaConfig:
    """The decoder that a job's `model` describes, over the byte vocabulary.

    Raises:
        ModelError: its heads and KV heads, or its width, do not fit each other.
    """
    return LlamaConfig(
        vocab=BYTE_VOCABULARY,
        width=model.width,
        layers=model.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.width // model.heads,
        mlp_width=model.mlp_width,
        context=model.context,
    )


def to_hf_config(config: LlamaConfig, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`config.json` of transformers' LlamaForCausalLM. `extra` adds keys such as `bos_token_id`, `eos_token_id`."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "vocab_size": config.vocab,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.mlp_width,
        "max_position_embeddings": config.context,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tie_embeddings,
        **(extra or {}),
    }


def from_hf_config(found: Mapping[str, Any]) -> LlamaConfig:
    """Read `config.json`.

    Raises:
        ModelError: another architecture, or a feature of Llama that this decoder does not have.
    """
    architectures = found.get("architectures") or [found.get("model_type", "nothing")]
    if "LlamaForCausalLM" not in architectures and found.get("model_type") != "llama":
        raise ModelError(
            "config.json of a LlamaForCausalLM", f"architectures {architectures}", "Use a model of the Llama family"
        )
    _refuse(found, "hidden_act", ("silu", None))
    _refuse(found, "attention_bias", (False, None))
    _refuse(found, "mlp_bias", (False, None))
    _refuse(found, "quantization_config", (None,))
    rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    if rope_type != "default":
        raise ModelError(
            "rope_scaling absent or of type default", f"type {rope_type}", "Use a model without scaled rotary positions"
        )
    try:
        width, heads = int(found["hidden_size"]), int(found["num_attention_heads"])
        return LlamaConfig(
            vocab=int(found["vocab_size"]),
            width=width,
            layers=int(found["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(found.get("num_key_value_heads") or heads),
            head_dim=int(found.get("head_dim") or width // heads),
            mlp_width=int(found["intermediate_size"]),
            context=int(found["max_position_embeddings"]),
            rope_theta=float(found.get("rope_theta") or rope.get("rope_theta") or 10_000.0),
            norm_eps=float(found["rms_norm_eps"]),
            tie_embeddings=bool(found.get("tie_word_embeddings", False)),
        )
    except KeyError as missing:
        raise ModelError(
            f"key {missing} in config.json", "it is missing", "Take config.json from the model's own release"
        ) from None


def _refuse(found: Mapping[str, Any], key: str, allowed: tuple[object, ...]) -> None:
    if found.get(key) not in allowed:
        raise ModelError(
            f"{key}: {allowed[0]} in config.json", f"{found[key]}", "This decoder has no such variant of Llama"
        )
