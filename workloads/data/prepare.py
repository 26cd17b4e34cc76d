"""From a job's text to the files that training reads. Runs once, in the driver, before a slice is reserved."""

import hashlib
import json
from dataclasses import asdict, dataclass

from etils import epath  # type: ignore[import-untyped]

from workloads.data.problem import JobProblem
from workloads.data.rows import cut_rows, split_rows, unigram_loss, write_rows
from workloads.data.text import load_documents
from workloads.data.tokens import encode
from workloads.spec.job import JobSpec
from workloads.whole_file import write_whole

TRAIN_FILE, HELD_OUT_FILE = "train.parquet", "held_out.parquet"
MARKER = "data.json"
"""Written last: while it is missing the folder is not complete."""


@dataclass(frozen=True)
class Prepared:
    """What lies in a run's data folder."""

    train_rows: int
    held_out_rows: int
    unigram_loss: float
    """Of the held-out rows, in nats per token."""
    text_sha256: str


def prepared_in(folder: epath.Path) -> Prepared:
    """What `prepare` left in the folder."""
    return Prepared(**json.loads((folder / MARKER).read_text()))


def prepare(job: JobSpec, folder: str) -> Prepared:
    """Tokenize the job's text and leave TRAIN_FILE, HELD_OUT_FILE and, last, MARKER in `folder`.

    Does nothing when they are there already: a run keeps the text that it started with.

    Raises:
        JobProblem: the text cannot be read, or is too short for the job.
    """
    target = epath.Path(folder)
    marker = target / MARKER
    if marker.exists():
        return prepared_in(target)
    tokens = encode(load_documents(job.data.source))
    rows = cut_rows(tokens, job.model.context)
    train, held_out = split_rows(rows, job.data.held_out)
    if not len(train) or not len(held_out):
        raise JobProblem(
            "data.source",
            job.data.source,
            f"{len(tokens)} tokens make {len(rows)} rows of {job.model.context}, of which {len(train)} train and "
            f"{len(held_out)} are held out; both must be at least 1",
        )
    target.mkdir(parents=True, exist_ok=True)
    prepared = Prepared(
        train_rows=len(train),
        held_out_rows=len(held_out),
        unigram_loss=unigram_loss(train, held_out),
        text_sha256=hashlib.sha256(tokens.tobytes()).hexdigest(),
    )
    write_rows(target / TRAIN_FILE, train)
    write_rows(target / HELD_OUT_FILE, held_out)
    write_whole(marker, json.dumps(asdict(prepared), indent=2))
    return prepared
