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
    """A queue of job ids for each lane.

    A ring that gets lost delays a job by a second, as workers read the table as well; so a queue that cannot
    be reached is written to the log, and is nobody's error.

    Raises:
        JobError: The URL names no kind of queue, or one whose library is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._queues: dict[str, Huey] = {}
        self._rests_until = 0.0
        _check(url)

    def ring(self, job_id: str, lane: str = "long") -> None:
        """Tell some worker that a job waits in a lane."""
        try:
            from attnknn.jobs.huey_queue import put  # with its clients, this takes a while to import

            put(self._open(lane), job_id)
        except Exception as error:  # Redis, PostgreSQL and SQLite each raise their own
            self._complain(error)
        finally:
            self.close()

    def answer(self, lane: str = "long") -> str | None:
        """Return the id of a job of a lane that somebody rang for, or None."""
        if time.monotonic() < self._rests_until:
            return None
        try:
            from attnknn.jobs.huey_queue import take

            return take(self._open(lane))
        except Exception as error:
            self._complain(error)
            return None

    def close(self) -> None:
        """Close the connections; the next use opens one again."""
        while self._queues:
            self._queues.popitem()[1].storage.close()

    def _open(self, lane: str) -> Huey:
        if lane not in self._queues:
            if self._url.startswith("sqlite"):
                move_aside_if_damaged(sqlite_path(self._url))
            from attnknn.jobs.huey_queue import open_queue

            self._queues[lane] = open_queue(self._url, lane)
        return self._queues[lane]

    def _complain(self, error: Exception) -> None:
        log.warning("the queue of jobs cannot be used (%s); the table is read instead", error)
        self._queues.clear()
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
