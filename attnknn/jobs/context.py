"""What a job may know and say while it runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from attnknn.errors import StorageError, UnknownJob
from attnknn.jobs.claims import Said
from attnknn.jobs.job import Job
from attnknn.jobs.store import JobStore

PACE = 0.25  # seconds between two writes of progress, and between two looks at what is wished
MOST_UNWRITTEN = 10_000  # events kept while the table cannot be written

log = logging.getLogger("attnknn.jobs")


class Stopped(BaseException):
    """The job was asked to stop; raised between two steps, so that files are whole."""


class Lost(BaseException):
    """The job is another worker's by now; this process must write nothing any more."""


class Context:
    """What a job may know and say while it runs.

    A thread writes what was said and looks at what is wished, four times a second, also while the job is
    busy elsewhere for long. Use it as a context manager.

    Attributes:
        job: Its row, as it was when it was taken up.
        draft: A folder of its own that outlives a crash: its checkpoint, and its unfinished work.

    Args:
        store: The table.
        job: The job.
        token: Of the worker that holds it.
        on_lost: Called from the thread when the job belongs to another worker by now; should end the process.
    """

    def __init__(self, store: JobStore, job: Job, token: str, on_lost: Callable[[], None]) -> None:
        self.job = job
        self.draft: Path = store.settings.draft(job.id)
        self._store, self._token, self._on_lost = store, token, on_lost
        self._confirmed = time.monotonic()
        self._lock = threading.Lock()  # held while writing, so that events keep their order
        self._said: list[Said] = []
        self._news: dict[str, Any] = {}
        self._is_stopped = False
        self._is_over = threading.Event()
        self._scribe = threading.Thread(target=self._write_and_look, daemon=True)

    def __enter__(self) -> Self:
        self._scribe.start()
        return self

    def __exit__(self, *facts: object) -> None:
        self._is_over.set()
        self._scribe.join()

    def report(self, stage: str, done: float, numbers: Mapping[str, Any] | None = None) -> None:
        """Tell how far the job is; written at most four times a second. Stops the job if that is wished.

        Args:
            stage: What it is doing, in words.
            done: Share of the whole job, between 0 and 1.
            numbers: A point of its curves, in JSON types.
        """
        self._news = {"stage": stage, "progress": min(max(done, 0.0), 1.0)}
        if numbers:
            self.say("numbers", {"stage": stage, **numbers})
        self.pause_point()

    def say(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event: a point of a curve, a line of the log."""
        self._said.append((kind, data))

    def pause_point(self) -> None:
        """Stop here if somebody wished it; call it, as often as you like, wherever nothing would be lost.

        Raises:
            Stopped: A cancel or a pause is wished.
        """
        if self._is_stopped:
            raise Stopped

    def check(self) -> None:
        """Look now, whenever the last look was: before a step that others will see.

        Raises:
            Stopped: A cancel or a pause is wished.
            Lost: The job belongs to another worker by now.
            StorageError: Nobody can tell.
        """
        self._look()
        self.pause_point()

    def write(self) -> None:
        """Write what was reported and said since the last time, whenever that was.

        Raises:
            Lost: The job belongs to another worker by now.
            StorageError: The table cannot be written; what was said is kept for the next time.
        """
        with self._lock:
            said, news = self._said[:], self._news
            if not said and not news:
                return
            if not self._store.report(self.job.id, self._token, said, **news):
                raise Lost
            del self._said[: len(said)]
            if self._news is news:
                self._news = {}

    def _look(self) -> None:
        try:
            wish = self._store.get(self.job.id).wish
        except UnknownJob:
            raise Lost from None
        if not self._store.holds(self.job.id, self._token):
            raise Lost
        self._confirmed = time.monotonic()
        self._is_stopped = bool(wish)

    def _write_and_look(self) -> None:
        while not self._is_over.wait(PACE):
            try:
                self.write()
                self._look()
            except Lost:
                return self._on_lost()
            except StorageError as error:  # go on, but not longer than the job is surely this worker's
                log.warning("%s", error)
                del self._said[:-MOST_UNWRITTEN]
                if time.monotonic() - self._confirmed > self._store.settings.lease:
                    return self._on_lost()
        return None
