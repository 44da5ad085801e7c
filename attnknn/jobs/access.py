"""How the tables are read and changed: one statement at a time, and a sentence when it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    RowMapping,
    Select,
    cast,
    extract,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from attnknn.jobs.damage import notice_of
from attnknn.jobs.opening import explain, open_engine, sqlite_path
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.table import jobs


class Access:
    """A database of jobs.

    Attributes:
        was_moved: Whether a damaged database was moved aside just now.
    """

    def __init__(self, settings: JobSettings) -> None:
        self.settings = settings
        self.engine, self.was_moved = open_engine(settings.database)

    @property
    def notice(self) -> str | None:
        """A sentence for the visitor, if a damaged database was moved aside in the last days."""
        is_file = self.settings.database.startswith("sqlite")
        return notice_of(sqlite_path(self.settings.database)) if is_file else None

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        self.engine.dispose()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """Open a connection and a transaction that is committed if the block ends well.

        Raises:
            StorageError: The database cannot be reached, read or written.
        """
        try:
            with self.engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise explain(error, self.settings.database) from error

    def _rows(self, query: Select[Any]) -> Sequence[RowMapping]:
        with self._connect() as connection:
            return connection.execute(query).mappings().all()

    def _count(self, *conditions: ColumnElement[bool]) -> int:
        with self._connect() as connection:
            return int(connection.execute(select(func.count()).where(*conditions)).scalar_one())

    def _change(self, job_id: str, condition: ColumnElement[bool], **values: Any) -> bool:
        with self._connect() as connection:
            return change(connection, job_id, condition, **values)

    def _now(self) -> ColumnElement[float]:
        """The time by one clock for all machines: the database's."""
        if self.engine.dialect.name == "postgresql":
            return cast(extract("epoch", func.clock_timestamp()), Float(53))
        return literal(time.time(), Float)


def change(connection: Connection, job_id: str, condition: ColumnElement[bool], **values: Any) -> bool:
    """Change a job if it is as the condition says; in one statement, so two processes cannot both succeed."""
    changed = connection.execute(update(jobs).where(jobs.c.id == job_id, condition).values(**values))
    return bool(changed.rowcount == 1)
