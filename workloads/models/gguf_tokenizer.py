"""The tokenizer and chat template in a GGUF file's metadata, as the files of an HF folder."""

import json
from pathlib import Path
from typing import Any

from gguf import TokenType
from gguf.gguf_reader import ReaderField
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from workloads.spec.decoder import ModelError

PRE_TOKENIZERS: dict[str, list[str]] = {
    "smollm": ["digits", "bytes"],
    "gpt-2": ["bytes"],
}
"""How text is cut before BPE, by `tokenizer.ggml.pre`; as llama.cpp's src/llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_*."""


def tokenizer_files(fields: dict[str, ReaderField], path: Path) -> dict[str, str]:
    """Contents of tokenizer.json, tokenizer_config.json and, where the model has one, chat_template.jinja.

    Raises:
        ModelError: the file has no byte-level BPE, or cuts text in an unknown way.
    """
    kind, pre = _scalar(fields, "tokenizer.ggml.model"), _scalar(fields, "tokenizer.ggml.pre")
    if kind != "gpt2":
        raise ModelError(f"a byte-level BPE tokenizer (gpt2) in {path}", f"{kind}", "Use the model's HF folder")
    if pre not in PRE_TOKENIZERS:
        raise ModelError(
            f"a known tokenizer.ggml.pre in {path}", f"{pre}; known are {', '.join(PRE_TOKENIZERS)}",
            "Use the model's HF folder",
        )  # fmt: skip
    tokens = _strings(fields["tokenizer.ggml.tokens"])
    merges = [
        (first, second)
        for first, _, second in (merge.partition(" ") for merge in _strings(fields["tokenizer.ggml.merges"]))
    ]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    parts = {
        "digits": lambda: pre_tokenizers.Digits(individual_digits=True),
        "bytes": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    }
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([parts[part]() for part in PRE_TOKENIZERS[pre]])  # type: ignore[no-untyped-call]
    tokenizer.decoder = decoders.ByteLevel()
    types = fields["tokenizer.ggml.token_type"]
    for token, part in zip(tokens, types.data, strict=True):
        token_type = int(types.parts[part][0])
        if token_type in (TokenType.CONTROL, TokenType.USER_DEFINED):
            special = token_type == TokenType.CONTROL
            tokenizer.add_tokens([AddedToken(token, special=special, normalized=False)])
    settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        number = _scalar(fields, f"tokenizer.ggml.{key}_token_id")
        if number is not None:
            settings[f"{name}_token"] = tokens[int(number)]
    if _scalar(fields, "tokenizer.ggml.add_bos_token") and "bos_token" in settings:
        bos = settings["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[bos, "$A"], pair=[bos, "$A", bos, "$B"], special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    files = {"tokenizer.json": tokenizer.to_str(), "tokenizer_config.json": json.dumps(settings, indent=2) + "\n"}
    template = _scalar(fields, "tokenizer.chat_template")
    return files if template is None else {**files, "chat_template.jinja": template}


def _scalar(fields: dict[str, ReaderField], key: str) -> Any:
    return fields[key].contents() if key in fields else None


def _strings(field: ReaderField) -> list[str]:
    """A long list of strings. `field.contents()` looks at each element's type again and takes seconds."""
    return [field.parts[part].tobytes().decode("utf-8") for part in field.data]
