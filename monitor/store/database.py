"""The SQLite file of one run: opening it, its tables, and SQLite's errors in plain words."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from monitor.filesystems import on_network
from monitor.store.pack import DamagedError

#: "TVST", so that a foreign SQLite file is told from ours.
APPLICATION_ID = 0x54565354
#: Raised by every change of the tables below.
FORMAT = 1
#: How long a reader or writer waits for another one's lock.
BUSY_S = 10.0

FULL = "the disk is full"
LOCKED = "another process keeps it locked"

# `piece` holds chunks (level 0) and rollup nodes (levels 1, 2); its id is level, stream, node and
# column in one number (see `piece_id`): one tree, no second index, and ranges lie together.
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE host (name TEXT PRIMARY KEY, seq INTEGER NOT NULL, sent_s REAL NOT NULL,
    received_unix_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, chunks INTEGER NOT NULL,
    rows INTEGER NOT NULL, next_row INTEGER NOT NULL, t_last REAL NOT NULL);
CREATE TABLE metric (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE tail (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX tail_of ON tail (stream, id);
CREATE TABLE piece (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE event (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX event_of ON event (kind, id);
CREATE TABLE fact (scope TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (scope, name)) WITHOUT ROWID;
CREATE TABLE finding (code TEXT, cause TEXT, raised_at_s REAL, data TEXT NOT NULL,
    PRIMARY KEY (code, cause, raised_at_s)) WITHOUT ROWID;
"""


class StoreError(Exception):
    """The store cannot be opened, read or written. The message is one line for a user."""


class DiskFullError(StoreError):
    """There is no room for what was to be written; nothing of it was."""


class Database:
    """One connection, guarded by one lock, so that several threads may share it.

    Args:
        path: the file.
        create: open for writing, and make the file where there is none; otherwise read only.

    Raises:
        StoreError: no such file, not ours, from a newer version, damaged, or the disk is full.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        self._writes = create
        with self._plainly():
            self.sql = self._connect(create)
        try:
            with self._plainly():
                self._check(create)
        except BaseException:
            self.sql.close()
            raise

    def _connect(self, create: bool) -> sqlite3.Connection:
        if create:
            _claim(self.path)
            return self._open("rwc")
        if not self.path.is_file():
            raise StoreError(f"{self.path}: no such run store")
        return self._open("ro")

    def _open(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(
            uri, timeout=BUSY_S, uri=True, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    def _check(self, create: bool) -> None:
        try:
            ours = self._identity()
        except sqlite3.OperationalError as error:
            if create or _in_words(error) == LOCKED or os.path.exists(f"{self.path}-wal"):
                raise
            # a WAL file in a folder that we may not write to: nobody writes it, so it stands still
            self.sql.close()
            self.sql = self._open("ro&immutable=1")
            ours = self._identity()
        if ours == (0, 0, 0) and create:
            self._create()
        elif ours[0] != APPLICATION_ID:
            raise StoreError(f"{self.path}: not a torchvitals run store")
        elif ours[1] > FORMAT:
            raise StoreError(f"{self.path}: written by a newer torchvitals; upgrade this one to read it")
        if create:
            self._tune()

    def _identity(self) -> tuple[int, int, int]:
        tables = self.sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application_id = self.sql.execute("PRAGMA application_id").fetchone()[0]
        return application_id, self.sql.execute("PRAGMA user_version").fetchone()[0], tables

    def _create(self) -> None:
        with self.transaction():
            for statement in _TABLES.split(";"):
                self.sql.execute(statement)
            self.sql.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.sql.execute(f"PRAGMA user_version = {FORMAT}")

    def _tune(self) -> None:
        shared = on_network(self.path)
        self.sql.execute(f"PRAGMA journal_mode = {'DELETE' if shared else 'WAL'}")
        self.sql.execute("PRAGMA synchronous = NORMAL")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it is written, or nothing.

        Raises:
            StoreError: it could not be written, for instance because the disk is full.
        """
        with self._lock, self._plainly():
            self.sql.execute("BEGIN IMMEDIATE")
            try:
                yield self.sql
                self.sql.execute("COMMIT")
            except BaseException:
                if self.sql.in_transaction:
                    self.sql.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Every read inside sees the file as it was at the first one. May be nested.

        Raises:
            StoreError: the file is damaged, or another process keeps it locked.
        """
        with self._lock, self._plainly():
            outer = self._depth == 0 and not self.sql.in_transaction
            self._depth += 1
            try:
                if outer:
                    self.sql.execute("BEGIN")
                yield self.sql
            finally:
                self._depth -= 1
                if outer and self.sql.in_transaction:
                    self.sql.execute("COMMIT")

    @contextlib.contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, DamagedError, OSError, OverflowError, UnicodeError) as error:
            words = _in_words(error)
            kind = DiskFullError if words == FULL else StoreError
            raise kind(f"{self.path}: {words}") from error

    def close(self) -> None:
        """Close the connection. A writer that nobody else reads leaves one plain file behind.

        Without its write-ahead log the file can be copied, and read where nothing may be written.
        """
        with self._lock:
            if self._writes:
                with contextlib.suppress(sqlite3.Error):
                    self.sql.execute("PRAGMA busy_timeout = 0")
                    self.sql.execute("PRAGMA journal_mode = DELETE")
            self.sql.close()


def _claim(path: Path) -> None:
    """Make the file where there is none, readable for the user alone."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError):
        return FULL if error.errno == errno.ENOSPC else error.strerror or str(error)
    text = " ".join(str(error).split())  # a damaged schema is quoted as it is, line breaks and all
    if "full" in text:
        return FULL
    if "locked" in text:
        return LOCKED
    if "not a database" in text:
        return "not a torchvitals run store"
    return f"damaged or unreadable ({text})"


def piece_id(level: int, stream: int, node: int, column: int) -> int:
    """Level (2 bits), stream (17), node (32) and column (12) as one key of the table `piece`."""
    return ((level << 17 | stream) << 32 | node) << 12 | column
