"""What the cloud holds: one SQLite file in the double's folder, for all threads and processes.

The provider's process is started anew for every run of the engine, and it calls from many threads at once. Everything
that looks before it writes does so in one `change()`, which nobody else can come between.
"""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.rig.gcp.values import Object

LONGEST_WAIT_S = 60.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS thing (token TEXT, id TEXT, outputs TEXT, own TEXT, PRIMARY KEY (token, id));
CREATE TABLE IF NOT EXISTS due (at REAL, work TEXT, id TEXT);
CREATE TABLE IF NOT EXISTS begun (id TEXT PRIMARY KEY);
"""


@dataclass(frozen=True)
class Thing:
    """One object: `outputs` as Google shows them, and `own`, what Google knows of it besides."""

    outputs: Object
    own: Object = field(default_factory=dict)


class Things:
    """What is held, within one `change()`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, token: str, id: str) -> Thing | None:
        row = self._connection.execute("SELECT outputs, own FROM thing WHERE token=? AND id=?", (token, id)).fetchone()
        return None if row is None else Thing(json.loads(row[0]), json.loads(row[1]))

    def every(self, token: str) -> dict[str, Thing]:
        rows = self._connection.execute("SELECT id, outputs, own FROM thing WHERE token=? ORDER BY id", (token,))
        return {id: Thing(json.loads(outputs), json.loads(own)) for id, outputs, own in rows}

    def put(self, token: str, id: str, thing: Thing) -> None:
        row = (token, id, json.dumps(thing.outputs), json.dumps(thing.own))
        self._connection.execute("INSERT OR REPLACE INTO thing VALUES (?, ?, ?, ?)", row)

    def drop(self, token: str, id: str) -> None:
        self._connection.execute("DELETE FROM thing WHERE token=? AND id=?", (token, id))

    def begin(self, name: str) -> bool:
        """Whether this was not begun before; from now on it was."""
        return self._connection.execute("INSERT OR IGNORE INTO begun VALUES (?)", (name,)).rowcount == 1

    def plan(self, at: float, work: str, id: str) -> None:
        """Note work on the object that falls due at a time, in seconds since the epoch."""
        self._connection.execute("INSERT INTO due VALUES (?, ?, ?)", (at, work, id))

    def take_due(self, now: float) -> list[tuple[str, str]]:
        """Work that has fallen due, and its object; whoever gets it does it."""
        found = self._connection.execute("SELECT rowid, work, id FROM due WHERE at <= ? ORDER BY at", (now,)).fetchall()
        self._connection.executemany("DELETE FROM due WHERE rowid=?", [(row[0],) for row in found])
        return [(work, id) for _, work, id in found]


class Held:
    """The file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "cloud.sqlite"
        self._lock = threading.Lock()
        with contextlib.closing(self._open()) as connection:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")

    @contextlib.contextmanager
    def change(self) -> Iterator[Things]:
        """Look and write, undisturbed; an error takes back what was written."""
        with self._lock, contextlib.closing(self._open()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Things(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=LONGEST_WAIT_S, isolation_level=None)
        # The file lives for one test; a crash of the machine ends that as well.
        connection.execute("PRAGMA synchronous=OFF")
        return connection
