"""What a worker does in one lane: answer the doorbell, give each job a child, and watch over it."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence

from attnknn.errors import JobError, StorageError
from attnknn.jobs.children import Child, Children
from attnknn.jobs.doorbell import Doorbell
from attnknn.jobs.lanes import Lane
from attnknn.jobs.processes import sentence_of
from attnknn.jobs.store import JobStore

WATCH = 0.2  # seconds between two looks at a job
LOOK = 1.0  # seconds between two looks at the table for work whose ring was lost
PAUSE = 10  # how many times the grace of a cancel a pause gets, which is to write a checkpoint

log = logging.getLogger("attnknn.jobs")


class Shift:
    """Until when the lanes of one worker work: until it is told to stop, or none has had work for long."""

    def __init__(self) -> None:
        self.is_told_to_stop = False  # a plain flag: a signal may come while a lock is held
        self._door = threading.Lock()
        self.open()

    @property
    def is_over(self) -> bool:
        """Whether no job may begin any more."""
        return self.is_told_to_stop or self._is_closed

    def open(self) -> None:
        """Begin to work."""
        self._is_closed, self._n_busy, self._since = False, 0, time.monotonic()

    def begin(self, claim: Callable[[], bool]) -> bool:
        """Begin a job, if it can be claimed and the worker is not about to leave."""
        with self._door:
            if self.is_over or not claim():
                return False
            self._n_busy += 1
            return True

    def finish(self) -> None:
        """Say that a job has been seen to its end."""
        with self._door:
            self._n_busy, self._since = self._n_busy - 1, time.monotonic()

    def close_if_idle(self, idle: float) -> None:
        """Let no job begin any more if no lane has had one for so many seconds."""
        with self._door:
            self._is_closed = self._n_busy == 0 and time.monotonic() - self._since >= idle


class LaneLoop:
    """Takes up the jobs of one lane, one at a time, for a worker's whole shift.

    Args:
        lane: Whose jobs.
        store: The table.
        token: The worker's.
        command: What to run as a child.
        shift: Until when.
    """

    def __init__(self, lane: Lane, store: JobStore, token: str, command: Sequence[str], shift: Shift) -> None:
        self._lane, self._store, self._token, self._shift = lane, store, token, shift
        self._doorbell = Doorbell(store.settings.queue)
        self._children = Children(lane, command, store.settings)
        self._at_work: tuple[Child, str] | None = None
        self._renewed = self._looked = 0.0

    def run(self) -> None:
        """Work until the shift is over; no child is left then."""
        try:
            with contextlib.suppress(OSError):
                self._children.start_ahead()
            while not self._shift.is_over:
                try:
                    if not self._look_at_table():
                        self._answer_doorbell()
                    self._children.tidy()
                except (StorageError, OSError) as error:
                    log.warning("%s", error)
                    time.sleep(LOOK)
        finally:
            self._children.close()
            self._doorbell.close()

    def renew(self) -> None:
        """Renew the lease of the job at hand as long as its child lives; the heartbeat does so."""
        at_work = self._at_work
        if at_work and at_work[0].is_alive and self._store.renew(at_work[1], self._token):
            self._renewed = time.monotonic()

    def _answer_doorbell(self) -> None:
        """Wait a moment for a ring; one for a job that was taken up already is old news."""
        job_id = self._doorbell.answer(self._lane.name)
        if job_id is None:
            time.sleep(self._lane.watch)
        else:
            self._take(job_id)

    def _look_at_table(self) -> bool:
        """Take up the job that has waited longest, whether somebody rang for it or not."""
        if time.monotonic() - self._looked < LOOK:
            return False
        self._looked = time.monotonic()
        return any(self._take(job_id) for job_id in self._store.waiting(self._lane.name)[:1])

    def _take(self, job_id: str) -> bool:
        """Do one job, if it is still to be had."""
        if not self._shift.begin(lambda: self._store.claim(job_id, self._token)):
            return False
        try:
            self._do(job_id)
            if not self._shift.is_over:
                self._children.start_ahead()
        finally:
            self._shift.finish()
            self._looked = 0.0  # others may wait, this one again among them
        return True

    def _do(self, job_id: str) -> None:
        self._renewed = time.monotonic()
        child, has_ended = self._children.take(), False
        self._at_work = child, job_id
        try:
            self._store.report(job_id, self._token, pid=child.pid)
            has_ended = self._watch(child, job_id)
        finally:
            code = self._children.part(child, has_ended)
            self._at_work = None
        self._conclude(job_id, code)

    def _watch(self, child: Child, job_id: str) -> bool:
        """Wait until the job has ended; False if it is no longer this child's, or the child is or must be gone."""
        child.give(job_id)
        wished: dict[str, float] = {}
        while child.is_alive and time.monotonic() - self._renewed < self._store.settings.lease:
            if child.wait(job_id, WATCH):
                return True
            with contextlib.suppress(StorageError):
                if not self._store.holds(job_id, self._token):
                    return child.wait(job_id, self._store.settings.grace)
            if self._shift.is_told_to_stop or self._is_out_of_patience(job_id, wished):
                child.end()
                return False
        return False

    def _is_out_of_patience(self, job_id: str, wished: dict[str, float]) -> bool:
        """Whether a wish has been known for longer than a child may take to follow it."""
        try:
            wish = self._store.get(job_id).wish
        except StorageError:
            return False
        since = wished.setdefault(wish or "", time.monotonic())
        patience = self._store.settings.grace * {"cancel": 1, "pause": PAUSE}.get(wish or "", 0)
        return wish is not None and time.monotonic() - since > patience

    def _conclude(self, job_id: str, code: int | None) -> None:
        """Bring a job to a state that is true, whose child is gone with this exit code, or has ended it and stays."""
        if code is not None:
            self._store.release(job_id, self._token, sentence_of(code), died=not self._shift.is_told_to_stop)
        with contextlib.suppress(JobError):
            if self._store.get(job_id).state in ("done", "cancelled"):
                shutil.rmtree(self._store.settings.draft(job_id), ignore_errors=True)
