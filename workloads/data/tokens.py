"""The byte-level tokenizer: token b is byte b, and two specials follow.

No vocabulary has to be learned or shipped, every text round-trips, and `tokenizers` reads the same definition back in
a service.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from workloads.spec.decoder import BYTE_VOCABULARY

END = 256
"""Id of `<|endoftext|>`, which stands after every document."""
PAD = 257
"""Id of `<|pad|>`, which fills rows of weight 0."""
VOCABULARY = 258
END_TEXT, PAD_TEXT = "<|endoftext|>", "<|pad|>"

MODEL_VOCABULARY = BYTE_VOCABULARY
"""Rows of the model's embedding."""


def encode(documents: Iterable[str]) -> NDArray[np.uint16]:
    """All documents as one run of tokens, (tokens,), each document followed by END."""
    parts: list[NDArray[np.uint16]] = []
    end = np.array([END], np.uint16)
    for document in documents:
        parts += [np.frombuffer(document.encode("utf-8"), np.uint8).astype(np.uint16), end]
    return np.concatenate(parts)


def byte_characters() -> dict[int, str]:
    """The printable character that byte-level tokenizers write for each byte (GPT-2's table).

    Source: https://github.com/openai/gpt-2/blob/master/src/encoder.py (bytes_to_unicode)
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    for place, byte in enumerate(byte for byte in range(256) if byte not in table):
        table[byte] = chr(256 + place)
    return table


def tokenizer() -> Tokenizer:
    """The tokenizer as `tokenizers` knows it: byte-level BPE without a single merge."""
    vocabulary = {character: byte for byte, character in byte_characters().items()}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(END_TEXT, special=True), AddedToken(PAD_TEXT, special=True)])
    return made


def tokenizer_files(context: int) -> dict[str, str]:
    """Name and text of the tokenizer's files in an exported model: no chat template, END ends an answer."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_TEXT,
        "pad_token": PAD_TEXT,
        "model_max_length": context,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
    }
    return {"tokenizer.json": tokenizer().to_str(pretty=True), "tokenizer_config.json": json.dumps(config, indent=2)}


def write_tokenizer(folder: Path, context: int) -> None:
    """Write tokenizer.json and tokenizer_config.json into an existing folder."""
    for name, text in tokenizer_files(context).items():
        (folder / name).write_text(text, encoding="utf-8")
