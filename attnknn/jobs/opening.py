"""How the database of jobs is opened, and what is said when that fails."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateColumn

from attnknn.errors import StorageError
from attnknn.jobs.damage import move_aside_if_damaged
from attnknn.jobs.table import jobs, metadata

SPARE = 2**18  # bytes that must be free for SQLite's journal


def open_engine(url: str) -> tuple[Engine, bool]:
    """Open the database, and create what is missing.

    A SQLite file that is not a database is moved aside, never deleted, and a new one takes its place.

    Returns:
        The engine, and whether a file was moved aside.

    Raises:
        StorageError: The database cannot be reached, or its folder cannot be written.
    """
    if not url.startswith("sqlite"):
        engine = _create_engine(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url))
        _create_tables(engine)
        return engine, False
    path = sqlite_path(url)
    make_folder(path.parent)
    moved = move_aside_if_damaged(path)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": 10})
    event.listen(engine, "connect", _prepare_sqlite)
    _create_tables(engine)
    return engine, moved


def sqlite_path(url: str) -> Path:
    """Return the file that a SQLite URL names."""
    return Path(url.removeprefix("sqlite:///"))


def make_folder(folder: Path) -> None:
    """Create a folder for jobs, unless it is there.

    Raises:
        StorageError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "Jobs need a folder that can be written.",
            f"{folder} cannot be made ({error.strerror}).",
            "Choose another one with the environment variable ATTNKNN_JOBS.",
        ) from error


def explain(error: DBAPIError, url: str) -> StorageError:
    """Say in a sentence why the database could not be used."""
    why = " ".join(str(error.orig).split())
    if re.search("is full|No space", why) or (why == "disk I/O error" and _is_disk_full(url)):
        received, remedy = "Its disk is full.", "Make room; nothing was lost, and jobs go on by themselves."
    elif re.search("readonly|read-only|unable to open", why):
        received = f"It cannot be written ({why})."
        remedy = "Allow writing in its folder, or choose another one with the environment variable ATTNKNN_JOBS."
    elif re.search("malformed|not a database", why):
        received, remedy = f"It is damaged ({why}).", "Restart the app: it will be moved aside, not deleted."
    else:
        received, remedy = f"It could not be used ({why}).", "Check that the database runs, and try again."
    return StorageError("The table of jobs must be readable and writable.", received, remedy)


def _is_disk_full(url: str) -> bool:
    """SQLite says "I/O error", too, where its journal cannot grow."""
    return shutil.disk_usage(sqlite_path(url).parent).free < SPARE


def _create_engine(url: str) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise StorageError(
            f"ATTNKNN_DB_URL needs the library {error.name}.", "It is not installed.", f"pip install {error.name}"
        ) from error


def _create_tables(engine: Engine) -> None:
    """Create tables and columns that are missing; two processes may do so at once, and one of them fails."""
    for patience in (0.3, 0.3, 0.0):
        try:
            metadata.create_all(engine)
            _add_columns(engine)
        except DBAPIError as error:
            if not patience:
                raise explain(error, str(engine.url)) from error
            time.sleep(patience)
        else:
            return


def _add_columns(engine: Engine) -> None:
    """Add the columns that a database of an older version lacks."""
    known = {column["name"] for column in inspect(engine).get_columns("jobs")}
    with engine.begin() as connection:
        for column in jobs.columns:
            if column.name not in known:
                connection.execute(text(f"ALTER TABLE jobs ADD COLUMN {CreateColumn(column).compile(engine)}"))


def _prepare_sqlite(connection: Any, record: Any) -> None:
    """One writer at a time, readers never wait, and a crash of the machine loses at most a moment."""
    cursor = connection.cursor()
    for pragma in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
