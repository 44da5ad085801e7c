"""The tables of the job layer, and how they are opened."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from attnknn.errors import StorageError

ACTIVE = ("queued", "running", "paused")
ENDED = ("done", "failed", "cancelled")
IS_ACTIVE = text(f"state IN {ACTIVE!r}")

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("title", String(200), nullable=False),
    Column("spec", Text, nullable=False),
    Column("spec_hash", String(64), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("wish", String(8)),
    Column("progress", Float, nullable=False, default=0.0),
    Column("stage", String(200), nullable=False, default=""),
    Column("attempt", Integer, nullable=False, default=0),
    Column("worker", String(32)),
    Column("lease_until", Float),
    Column("pid", Integer),
    Column("created", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("error", Text),
    Column("result", Text),
)
Index("one_active_job_per_spec", jobs.c.spec_hash, unique=True, sqlite_where=IS_ACTIVE, postgresql_where=IS_ACTIVE)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("job", String(32), nullable=False, index=True),
    Column("time", Float, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("data", Text, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("token", String(32), primary_key=True),
    Column("host", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("heartbeat", Float, nullable=False),
)


def open_engine(url: str) -> tuple[Engine, str | None]:
    """Open the database, and create what is missing.

    A SQLite file that is not a database is moved aside, never deleted, and a new one takes its place.

    Returns:
        The engine, and a sentence for the visitor if a file was moved aside.

    Raises:
        StorageError: The database cannot be reached, or its folder cannot be written.
    """
    if not url.startswith("sqlite"):
        engine = create_engine(url, pool_pre_ping=True)
        _create(engine, url)
        return engine, None
    path = Path(url.removeprefix("sqlite:///"))
    _make_folder(path.parent)
    notice = None if _is_database(path) else _move_aside(path)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": 10})
    event.listen(engine, "connect", _prepare_sqlite)
    _create(engine, url)
    return engine, notice


def _create(engine: Engine, url: str) -> None:
    try:
        metadata.create_all(engine)
    except DatabaseError as error:
        raise StorageError(
            "The table of jobs must be readable and writable.",
            f"Opening {engine.url.render_as_string(hide_password=True)} failed ({error.orig}).",
            "Check that the database runs, that the folder can be written, and that the disk is not full.",
        ) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "Jobs need a folder that can be written.",
            f"{folder} cannot be made ({error.strerror}).",
            "Choose another one with the environment variable ATTNKNN_JOBS.",
        ) from error


def _is_database(path: Path) -> bool:
    """Say whether a SQLite file is absent, empty or sound."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    try:
        with sqlite3.connect(path, timeout=10) as connection:
            return connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return True  # locked or unreadable: not a matter of its content
    except sqlite3.DatabaseError:
        return False


def _move_aside(path: Path) -> str:
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(aside.with_name(aside.name + suffix))
    moved = f"It was moved to {aside.name}, and a new one was started; nothing was deleted."
    return f"The database of jobs was damaged. {moved}"


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """One writer at a time, readers never wait, and a crash of the machine loses at most a moment."""
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
