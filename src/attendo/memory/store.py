"""The store of a translation memory: one SQLite file, safe under several processes and threads.

A source has one translation per pair of languages; a later one replaces it. Exact lookups compare
normalized sources. Fuzzy lookups take the units whose sketches (`attendo.memory.sketch`) have most
hashes in common with that of the text, and score them by edit distance (rapidfuzz).

Each thread has a connection of its own; the file is in write-ahead mode, so that readers never wait
for a writer. Everything that SQLite reports becomes an `InputError` without the path of the file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager, suppress
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import message
from attendo.memory.sketch import HASH_BITS, sketch
from attendo.memory.unit import Unit, check_unit, normalize_source
from attendo.text.languages import match_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

APPLICATION_ID = 0x4154544D  # "ATTM"
SCHEMA_VERSION = 1
MAX_UNITS, MAX_PAIRS = 1_000_000, 500
BUSY_SECONDS = 30.0
"""How long a writer waits for another one."""
MIN_SCORE, NUM_MATCHES = 0.7, 3
MAX_FUZZY_SCORE = 0.99
"""Of a source that differs in case only."""
MAX_CANDIDATES = 200
"""Units that are scored by edit distance."""
MIN_HASHES, MAX_COUNTED_ROWS, MAX_ROWS = 12, 4000, 16_000
"""Of the hashes of a text, the rarest ones are looked up: at least this number, and as many more as
have at most MAX_ROWS units together."""
EXPORT_ROWS = 1000
"""Units that are read at a time, so that no reader keeps the write-ahead log from being emptied."""
COLUMNS = "source, target, p.src_lang, p.tgt_lang, model, output, author, time, origin, u.id AS id"
SELECT = f"SELECT {COLUMNS} FROM units u JOIN pairs p ON p.id = u.pair"  # noqa: S608 - constants
SCHEMA = """
CREATE TABLE pairs (
    id INTEGER PRIMARY KEY,
    src_lang TEXT NOT NULL,
    tgt_lang TEXT NOT NULL,
    UNIQUE (src_lang, tgt_lang)
);
CREATE TABLE units (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pair INTEGER NOT NULL REFERENCES pairs (id),
    key TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    model TEXT,
    output TEXT,
    author TEXT,
    time INTEGER NOT NULL,
    origin TEXT NOT NULL,
    UNIQUE (pair, key)
);
CREATE TABLE sketches (
    hash INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    PRIMARY KEY (hash, unit)
) WITHOUT ROWID;
"""


class Match(NamedTuple):
    """A unit whose source is like a text."""

    unit: Unit
    score: float
    """1 for the same text, else the normalized edit similarity."""

    @property
    def is_exact(self) -> bool:
        """Whether the source is the text, after normalization."""
        return self.score == 1.0


class AddedUnits(NamedTuple):
    """What became of units that were added."""

    added: int = 0
    replaced: int = 0
    """Units whose source had another translation."""
    unchanged: int = 0


class TranslationMemory:
    """The units in one file.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, TranslationMemory(Path(folder) / "m.db") as memory:
    ...     memory.add([Unit("Two files", "파일 두 개", "en", "ko")])
    ...     memory.find_exact("Two  files", "en", "ko").target
    ...     [round(one.score, 2) for one in memory.find_fuzzy("Ten files", "en", "ko")]
    AddedUnits(added=1, replaced=0, unchanged=0)
    '파일 두 개'
    [0.78]

    Args:
        path: the file; it is created if it does not exist.
        max_units: units beyond this number are rejected.
        create: whether a new file may be created.

    """

    def __init__(self, path: Path, *, max_units: int = MAX_UNITS, create: bool = True) -> None:
        self.max_units = max_units
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        if not create and not path.is_file():
            raise InputError(
                message("{path} does not exist", path=path), hint="attendo serve --memory writes it"
            )
        try:
            if not path.exists():  # corrections are for their owner only
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with _translated_errors():
                self._open_schema()
        except OSError as error:
            detail = error.strerror or str(error)
            reason = message("{path} cannot be opened: {detail}", path=path, detail=detail)
            hint = "the folder must exist, and you must be allowed to write into it"
            raise InputError(reason, hint=hint) from None
        except InputError as error:
            self.close()
            reason = message("{path}: {detail}", path=path, detail=error.reason)
            raise InputError(reason, hint=error.hint) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        with self._lock:
            connections, self._connections = self._connections, []
            self._local = threading.local()
        for connection in connections:
            connection.close()

    # -- reading

    def count(self) -> int:
        """Return the number of units."""
        with _translated_errors():
            return int(self._connect().execute("SELECT COUNT(*) FROM units").fetchone()[0])

    def list_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of languages that units have, in alphabetical order."""
        query = (
            "SELECT src_lang, tgt_lang FROM pairs p"
            " WHERE EXISTS (SELECT 1 FROM units WHERE pair = p.id) ORDER BY 1, 2"
        )
        with _translated_errors():
            return list(self._connect().execute(query))

    def find_exact(self, text: str, src_lang: str, tgt_lang: str) -> Unit | None:
        """Return the unit whose source is this text, after normalization."""
        with _translated_errors():
            connection = self._connect()
            for pair in _matching_pairs(connection, src_lang, tgt_lang):
                query = f"{SELECT} WHERE u.pair = ? AND u.key = ?"
                row = connection.execute(query, (pair, normalize_source(text))).fetchone()
                if row is not None:
                    return Unit(*row)
        return None

    def find_fuzzy(
        self,
        text: str,
        src_lang: str,
        tgt_lang: str,
        *,
        min_score: float = MIN_SCORE,
        limit: int = NUM_MATCHES,
    ) -> list[Match]:
        """Return the units whose sources are most like a text, best first; exact ones too."""
        similarity = import_similarity()
        key = normalize_source(text)
        if not key:
            return []
        with _translated_errors():
            connection = self._connect()
            found = [
                candidate
                for pair in _matching_pairs(connection, src_lang, tgt_lang)
                for candidate in _find_candidates(connection, pair, key)
            ]
            scored = []
            for unit_id, other in found:
                score = 1.0
                if other != key:
                    folded = (key.casefold(), other.casefold())
                    score = min(similarity(*folded, score_cutoff=min_score), MAX_FUZZY_SCORE)
                if score >= min_score:
                    scored.append((score, unit_id))
            best = sorted(scored, reverse=True)[:limit]
            return [
                Match(Unit(*row), score)
                for score, unit_id in best
                for row in connection.execute(f"{SELECT} WHERE u.id = ?", (unit_id,))
            ]

    def search(
        self,
        text: str = "",
        *,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Unit]:
        """Return the units with a text in source or target, newest first.

        Args:
            text: a part of the source or the target; case counts only outside of ASCII.
            src_lang: the language of the source.
            tgt_lang: the language of the target.
            before: only units with a smaller id, for the next page.
            limit: the number of units at most.

        """
        conditions, values = ["u.id < ?"], [before if before is not None else 2**63 - 1]
        filters: list[Any] = values
        if text:
            pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            conditions.append("(u.source LIKE ? ESCAPE '\\' OR u.target LIKE ? ESCAPE '\\')")
            filters += [pattern, pattern]
        for column, lang in (("src_lang", src_lang), ("tgt_lang", tgt_lang)):
            if lang is not None:
                conditions.append(f"p.{column} = ?")
                filters.append(lang)
        query = f"{SELECT} WHERE {' AND '.join(conditions)} ORDER BY u.id DESC LIMIT ?"
        with _translated_errors():
            rows = self._connect().execute(query, (*filters, limit))
            return [Unit(*row) for row in rows]

    def __iter__(self) -> Iterator[Unit]:
        """Yield all units, oldest first."""
        last = 0
        while True:
            with _translated_errors():
                query = f"{SELECT} WHERE u.id > ? ORDER BY u.id LIMIT ?"
                rows = self._connect().execute(query, (last, EXPORT_ROWS)).fetchall()
            if not rows:
                return
            for row in rows:
                yield Unit(*row)
            last = rows[-1][-1]

    # -- writing

    def add(self, units: Iterable[Unit]) -> AddedUnits:
        """Add units, all or none of them; those with a known source replace the older ones."""
        now = int(time())
        counts = dict.fromkeys(AddedUnits._fields, 0)
        with self._write() as connection:
            number = connection.execute("SELECT COUNT(*) FROM units").fetchone()[0]
            for unit in units:
                checked = check_unit(unit)
                outcome = _add_unit(connection, checked._replace(time=checked.time or now))
                counts[outcome] += 1
                if number + counts["added"] > self.max_units:
                    raise InputError(
                        message("the memory is full: {count} units", count=self.max_units),
                        hint="delete units, or raise max_memory_units",
                    )
        return AddedUnits(**counts)

    def delete(self, unit_id: int) -> bool:
        """Delete a unit; return whether there was one."""
        with self._write() as connection:
            return _delete_unit(connection, unit_id)

    # -- connections

    def _open_schema(self) -> None:
        connection = self._connect()
        connection.execute("BEGIN")  # what is read belongs together: others may create the tables
        try:
            application, version = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            )
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]
        finally:
            connection.execute("ROLLBACK")
        if (tables or version) and application != APPLICATION_ID:
            raise InputError(
                "it is another program's database", hint="choose another file for the memory"
            )
        if version > SCHEMA_VERSION:
            raise InputError(
                "a newer version of Attendo has written it", hint="update Attendo: pip install -U"
            )
        if version < SCHEMA_VERSION:
            with self._write():
                self._create_tables(connection)
        with suppress(sqlite3.OperationalError):  # in use by others: the next one switches
            connection.execute("PRAGMA journal_mode = WAL")

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA user_version").fetchone()[0]:
            return  # another process was faster
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _connect(self) -> sqlite3.Connection:
        """Return the connection of this thread; that of a process that was forked is its own."""
        owner = getattr(self._local, "owner", None)
        if owner == os.getpid():
            connection: sqlite3.Connection = self._local.connection
            return connection
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # `close` closes those of all threads
        )
        connection.execute("PRAGMA synchronous = FULL")  # a correction is not lost with the power
        connection.execute("PRAGMA trusted_schema = OFF")
        self._local.connection, self._local.owner = connection, os.getpid()
        with self._lock:
            self._connections.append(connection)
        return connection

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction, and commit it unless an exception is raised."""
        with _translated_errors():
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def _add_unit(connection: sqlite3.Connection, unit: Unit) -> str:
    """Add a unit; return the field of `AddedUnits` that it counts for."""
    languages = (unit.src_lang, unit.tgt_lang)
    connection.execute("INSERT OR IGNORE INTO pairs (src_lang, tgt_lang) VALUES (?, ?)", languages)
    query = "SELECT id FROM pairs WHERE src_lang = ? AND tgt_lang = ?"
    pair = connection.execute(query, languages).fetchone()[0]
    if pair > MAX_PAIRS:  # every lookup goes through them
        raise InputError(message("more than {count} pairs of languages", count=MAX_PAIRS))
    key = normalize_source(unit.source)
    query = "SELECT id, target, output, origin FROM units WHERE pair = ? AND key = ?"
    known = connection.execute(query, (pair, key)).fetchone()
    if known is not None:
        if known[1:] == (unit.target, unit.output, unit.origin):
            return "unchanged"
        _delete_unit(connection, known[0])
    cursor = connection.execute(
        "INSERT INTO units (pair, key, source, target, model, output, author, time, origin)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (pair, key, unit.source, unit.target, unit.model, unit.output, unit.author, unit.time,
         unit.origin),
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO sketches (hash, unit) VALUES (?, ?)",
        [(_pair_hash(pair, one), cursor.lastrowid) for one in sketch(key)],
    )
    return "added" if known is None else "replaced"


def _delete_unit(connection: sqlite3.Connection, unit_id: int) -> bool:
    row = connection.execute("SELECT pair, key FROM units WHERE id = ?", (unit_id,)).fetchone()
    if row is None:
        return False
    pair, key = row
    connection.executemany(
        "DELETE FROM sketches WHERE hash = ? AND unit = ?",
        [(_pair_hash(pair, one), unit_id) for one in sketch(key)],
    )
    connection.execute("DELETE FROM units WHERE id = ?", (unit_id,))
    return True


def _matching_pairs(connection: sqlite3.Connection, src_lang: str, tgt_lang: str) -> list[int]:
    """Return the pairs of these languages: first as they are, then with or without a region."""
    rows = connection.execute("SELECT id, src_lang, tgt_lang FROM pairs").fetchall()
    matching = [
        (pair, src, tgt)
        for pair, src, tgt in rows
        if match_language(src_lang, [src]) and match_language(tgt_lang, [tgt])
    ]
    return [
        pair
        for pair, *_ in sorted(matching, key=lambda row: (row[1:] != (src_lang, tgt_lang), row[0]))
    ]


def _find_candidates(connection: sqlite3.Connection, pair: int, key: str) -> list[tuple[int, str]]:
    """Return the ids and keys of the units whose sketches have most hashes of a text."""
    hashes = _rarest(connection, [_pair_hash(pair, one) for one in sketch(key)])
    marks = ", ".join("?" * len(hashes))
    query = (  # only question marks are inserted
        "SELECT u.id, u.key FROM units u JOIN ("  # noqa: S608
        f" SELECT unit FROM sketches WHERE hash IN ({marks})"
        " GROUP BY unit ORDER BY COUNT(*) DESC LIMIT ?) ON u.id = unit"
    )
    return connection.execute(query, (*hashes, MAX_CANDIDATES)).fetchall()


def _rarest(connection: sqlite3.Connection, hashes: list[int]) -> list[int]:
    """Return the hashes with few units: those of common trigrams say little and cost much."""
    query = "SELECT COUNT(*) FROM (SELECT 1 FROM sketches WHERE hash = ? LIMIT ?)"
    counted = sorted(
        (connection.execute(query, (one, MAX_COUNTED_ROWS)).fetchone()[0], one) for one in hashes
    )
    chosen: list[int] = []
    num_rows = 0
    for count, one in counted:
        num_rows += count
        if len(chosen) >= MIN_HASHES and num_rows > MAX_ROWS:
            break
        if count:
            chosen.append(one)
    return chosen


def _pair_hash(pair: int, one: int) -> int:
    return pair << HASH_BITS | one


def import_similarity() -> Any:
    """Return the function that scores two texts from 0 to 1; raise if its library is missing."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ModuleNotFoundError:
        raise MissingExtraError("rapidfuzz", "serve") from None
    return Levenshtein.normalized_similarity


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn errors of SQLite into an `InputError` that names neither the file nor the statement."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or type(error).__name__
        reasons = {
            "SQLITE_BUSY": "another program is writing into the memory",
            "SQLITE_CORRUPT": "the memory is damaged",
            "SQLITE_FULL": "the disk is full",
            "SQLITE_NOTADB": "it is not a translation memory",
            "SQLITE_READONLY": "the memory is read-only",
        }
        known = next((text for code, text in reasons.items() if name.startswith(code)), None)
        reason = known or message("the memory cannot be used: {name}", name=name)
        raise InputError(
            reason, hint="check the file of --memory, its disk and its owner"
        ) from None
