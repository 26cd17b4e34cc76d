"""From a text to rows in a file and back, and the tokenizer that services read."""

from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from etils import epath  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from workloads.data import rows as rows_module
from workloads.data.plan import NO_ROW
from workloads.data.prepare import HELD_OUT_FILE, TRAIN_FILE, prepare, prepared_in
from workloads.data.problem import JobProblem
from workloads.data.rows import cut_rows, split_rows, take_rows, unigram_loss, write_rows
from workloads.data.stream import gather
from workloads.data.text import BUNDLED, load_documents
from workloads.data.tokens import END, MODEL_VOCABULARY, PAD, VOCABULARY, encode, tokenizer, write_tokenizer
from workloads.spec.job import BUNDLED_TEXTS, DataSpec, JobSpec, ModelSpec


@given(text=st.text())
def test_a_token_is_a_byte(text: str) -> None:
    assert encode([text]).tolist() == [*text.encode(), END]


@given(text=st.text(min_size=1))
def test_the_written_tokenizer_agrees_and_round_trips(text: str) -> None:
    made = tokenizer()
    ids = made.encode(text).ids
    if "<|" not in text:
        assert ids == list(text.encode())
    assert made.decode(ids) == text


def test_the_tokenizer_file_is_read_back(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, context=128)
    made = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert made.get_vocab_size() == VOCABULARY <= MODEL_VOCABULARY
    assert made.token_to_id("<|endoftext|>") == END
    assert made.token_to_id("<|pad|>") == PAD
    assert made.encode("a b<|endoftext|>").ids == [97, 32, 98, END]


def test_the_bundled_text_is_real_and_licensed() -> None:
    assert tuple(BUNDLED) == BUNDLED_TEXTS
    documents = load_documents("bundled:python-reference")
    assert len(documents) > 50
    assert any("floating point literals" in document.lower() for document in documents)
    notice = (Path(rows_module.__file__).parent / "texts" / "NOTICE").read_text()
    assert "python-reference.txt.gz" in notice
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in notice


def test_texts_of_users(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ftwo\f")
    pq.write_table(pa.table({"text": ["one", None, "", "two"]}), tmp_path / "a.parquet")
    assert load_documents(str(tmp_path / "a.txt")) == load_documents(str(tmp_path / "a.parquet")) == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bundled:python-refrence", None, "bundled:python-reference"),
        ("missing.txt", None, "no such file"),
        ("a.csv", b"x", ".txt or .parquet"),
        ("empty.txt", b"", "holds no text"),
        ("latin.txt", b"caf\xe9", "not UTF-8"),
        ("bad.parquet", b"not parquet at all", "not parquet"),
    ],
)
def test_a_source_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    source = name if name.startswith("bundled:") else str(tmp_path / name)
    if content is not None:
        Path(source).write_bytes(content)
    with pytest.raises(JobProblem) as caught:
        load_documents(source)
    assert caught.value.key == "data.source"
    assert words in str(caught.value)


def test_a_parquet_without_text_names_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(JobProblem, match="body"):
        load_documents(str(tmp_path / "a.parquet"))


def test_bytes_in_a_parquet_are_text_and_anything_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array(["héllo".encode(), None], pa.binary())}), path)
    assert load_documents(str(path)) == ["héllo"]
    pq.write_table(pa.table({"text": pa.array(["one", "one"]).dictionary_encode()}), path)
    assert load_documents(str(path)) == ["one", "one"]
    for values, said in ([b"\xff\xfe"], "not UTF-8"), ([[1, 2]], "holds list"), ([7], "holds int64"):
        pq.write_table(pa.table({"text": values}), path)
        with pytest.raises(JobProblem, match=said):
            load_documents(str(path))


@given(count=st.integers(0, 200), context=st.integers(1, 16))
def test_rows_predict_every_token_once(count: int, context: int) -> None:
    tokens = np.arange(count, dtype=np.uint16)
    rows = cut_rows(tokens, context)
    assert rows.shape == (max(0, (count - 1) // context), context + 1)
    assert rows[:, 1:].ravel().tolist() == list(range(1, len(rows) * context + 1))


@given(count=st.integers(0, 300), held_out=st.floats(0.01, 0.49))
def test_the_split_is_whole_even_and_fixed(count: int, held_out: float) -> None:
    rows = np.arange(count, dtype=np.uint16).reshape(-1, 1)
    train, kept = split_rows(rows, held_out)
    assert sorted([*train.ravel(), *kept.ravel()]) == list(range(count))
    assert abs(len(kept) - count * held_out) <= 1
    assert np.array_equal(split_rows(rows, held_out)[1], kept)


def test_the_unigram_loss_is_the_entropy_of_the_counts() -> None:
    fair = np.tile(np.array([0, 1], np.uint16), 50_000).reshape(1, -1)
    assert unigram_loss(fair, fair) == pytest.approx(np.log(2), abs=0.05)
    assert unigram_loss(fair, np.full((1, 9), 5, np.uint16)) == pytest.approx(np.log(100_257), abs=0.01)


@given(wanted=st.lists(st.integers(0, 999), min_size=1, max_size=50))
def test_rows_are_taken_by_number(tmp_path_factory: pytest.TempPathFactory, wanted: list[int]) -> None:
    path = tmp_path_factory.getbasetemp() / "thousand.parquet"
    rows = (np.arange(9000) % 258).astype(np.uint16).reshape(1000, 9)
    if not path.exists():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows_module, "ROW_GROUP_BYTES", 18 * 64)
            write_rows(epath.Path(path), rows)
        assert pq.ParquetFile(path).metadata.num_row_groups == 16
    assert np.array_equal(take_rows(str(path), np.array(wanted)), rows[wanted])


def test_padded_slots_have_no_weight(tmp_path: Path) -> None:
    rows = np.arange(27, dtype=np.uint16).reshape(3, 9)
    write_rows(epath.Path(tmp_path / "rows.parquet"), rows)
    found = gather({"row": np.array([2, NO_ROW]), "slot": np.array([4, 5])}, path=str(tmp_path / "rows.parquet"))
    assert found["tokens"].tolist() == [rows[2].tolist(), [PAD] * 9]
    assert found["weight"].tolist() == [1.0, 0.0]
    assert found["slot"].tolist() == [4, 5]
    assert {name: str(column.dtype) for name, column in found.items()} == {
        "tokens": "int32",
        "weight": "float32",
        "slot": "int32",
    }


def test_a_run_is_prepared_once(tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text("abcdefghijklmnop" * 100)
    job = JobSpec(name="j", pool="p", model=ModelSpec(context=16), data=DataSpec(source=str(source)))
    first = prepare(job, str(tmp_path / "data"))
    assert first.train_rows + first.held_out_rows == 100
    assert pq.read_metadata(tmp_path / "data" / TRAIN_FILE).num_rows == first.train_rows
    assert pq.read_metadata(tmp_path / "data" / HELD_OUT_FILE).num_rows == first.held_out_rows
    source.write_text("changed while the run was down" * 100)
    assert prepare(job, str(tmp_path / "data")) == prepared_in(epath.Path(tmp_path / "data")) == first


def test_a_text_too_short_for_its_job(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("short")
    job = JobSpec(name="j", pool="p", data=DataSpec(source=str(tmp_path / "text.txt")))
    with pytest.raises(JobProblem, match="6 tokens make 0 rows of 128"):
        prepare(job, str(tmp_path / "data"))
