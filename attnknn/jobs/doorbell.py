"""The doorbell: huey carries one job id, as JSON, so that a worker need not wait for its next look at the table."""

from __future__ import annotations

import logging
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from attnknn.errors import JobError
from attnknn.jobs.damage import move_aside_if_damaged
from attnknn.jobs.opening import sqlite_path

if TYPE_CHECKING:
    from huey import Huey

REST = 1.0  # seconds without a doorbell after it failed

log = logging.getLogger("attnknn.jobs")


class Doorbell:
    """A queue of job ids.

    A ring that gets lost delays a job by a second, as workers read the table as well; so a queue that cannot
    be reached is written to the log, and is nobody's error.

    Raises:
        JobError: The URL names no kind of queue, or one whose library is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._huey: Huey | None = None
        self._rests_until = 0.0
        _check(url)

    def ring(self, job_id: str) -> None:
        """Tell some worker that a job waits."""
        try:
            from attnknn.jobs.huey_queue import put  # with its clients, this takes a while to import

            put(self._open(), job_id)
        except Exception as error:  # Redis, PostgreSQL and SQLite each raise their own
            self._complain(error)
        finally:
            self.close()

    def answer(self) -> str | None:
        """Return the id of a job that somebody rang for, or None."""
        if time.monotonic() < self._rests_until:
            return None
        try:
            from attnknn.jobs.huey_queue import take

            return take(self._open())
        except Exception as error:
            self._complain(error)
            return None

    def close(self) -> None:
        """Close the connection; the next use opens one again."""
        if self._huey is not None:
            self._huey.storage.close()
            self._huey = None

    def _open(self) -> Huey:
        if self._huey is None:
            if self._url.startswith("sqlite"):
                move_aside_if_damaged(sqlite_path(self._url))
            from attnknn.jobs.huey_queue import open_queue

            self._huey = open_queue(self._url)
        return self._huey

    def _complain(self, error: Exception) -> None:
        log.warning("the queue of jobs cannot be used (%s); the table is read instead", error)
        self._huey = None
        self._rests_until = time.monotonic() + REST


def _check(url: str) -> None:
    kind = url.split(":", 1)[0].split("+", 1)[0]
    if kind not in ("sqlite", "redis", "rediss", "postgresql", "postgres"):
        raise JobError(
            "The queue must be SQLite, Redis or PostgreSQL.",
            f'ATTNKNN_QUEUE_URL starts with "{kind}:".',
            "Use sqlite:///file, redis://host/0 or postgresql://host/name.",
        )
    library = {"r": "redis", "p": "psycopg"}.get(kind[0])
    if library and find_spec(library) is None:
        expected = f"The queue of jobs needs the library {library}."
        raise JobError(expected, "It is not installed.", f"Install it with: pip install {library}.")
