"""The worker: answers the doorbell, gives each job a child process, and watches over it.

One per machine, by a file lock; idle for long, it leaves. It never imports what jobs need: a crash in a
library ends a child, and the job goes on from its last checkpoint in the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Sequence

from filelock import Timeout

from attnknn.errors import JobError, StorageError
from attnknn.jobs.doorbell import Doorbell
from attnknn.jobs.opening import make_folder
from attnknn.jobs.processes import end, kill_stray, lock_of, sentence_of, start_child, unwritable
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import JobStore

WATCH = 0.1  # seconds between two looks at a child, or at the doorbell
LOOK = 1.0  # seconds between two looks at the table for work whose ring was lost
PAUSE = 10  # how many times the grace of a cancel a pause gets, which is to write a checkpoint
KNOCK = 1.0  # seconds to wait for the lock, which others try for a moment to see who is there

log = logging.getLogger("attnknn.jobs")


class Worker:
    """Takes up jobs one at a time until it is told to stop, or has been idle for long.

    Args:
        settings: Where jobs are, and how patient to be.
        child_command: What to run as a child; it gets the worker's token as its last argument.
    """

    def __init__(self, settings: JobSettings, child_command: Sequence[str]) -> None:
        self.settings = settings
        make_folder(settings.folder)
        self.store = JobStore(settings)
        self.token = uuid.uuid4().hex
        self._child_command = [*child_command, self.token]
        self._doorbell = Doorbell(settings.queue)
        self._is_told_to_stop = False  # a plain flag: a signal may come while a lock is held
        self._has_left = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._job_id = ""
        self._renewed = self._looked = 0.0

    def run(self) -> bool:
        """Work; return False if this machine has a worker already.

        Raises:
            StorageError: The folder of jobs cannot be written.
        """
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self.stop())
        while self._work_under_lock():
            if self._is_told_to_stop or not self._has_work():  # some may have come between the last look and here
                return True
        return False

    def stop(self) -> None:
        """Stop soon: the job at hand goes back to the queue, with all that its checkpoint holds."""
        self._is_told_to_stop = True

    def _work_under_lock(self) -> bool:
        try:
            lock = lock_of(self.settings)
            lock.acquire(timeout=KNOCK)
        except Timeout:
            return False
        except OSError as error:
            raise unwritable(self.settings, error) from error
        self._has_left.clear()
        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        try:
            self._work()
        finally:
            self._has_left.set()
            beating.join(5)
            self._doorbell.close()
            with contextlib.suppress(StorageError):
                self.store.leave(self.token)
            lock.release()
        return True

    def _work(self) -> None:
        with contextlib.suppress(StorageError, OSError):
            self._inherit()
            self._sweep()
        last = time.monotonic()
        while not self._is_told_to_stop and time.monotonic() - last < self.settings.idle:
            try:
                if self._look_at_table() or self._answer_doorbell():
                    last = time.monotonic()
            except (StorageError, OSError) as error:
                log.warning("%s", error)
                time.sleep(LOOK)

    def _has_work(self) -> bool:
        try:
            return bool(self.store.waiting())
        except StorageError:
            return False

    def _answer_doorbell(self) -> bool:
        """Wait a moment for a ring; one for a job that was taken up already is old news."""
        job_id = self._doorbell.answer()
        if job_id is None:
            time.sleep(WATCH)
        return self._take(job_id)

    def _look_at_table(self) -> bool:
        """Take up the job that has waited longest, whether somebody rang for it or not."""
        if time.monotonic() - self._looked < LOOK:
            return False
        self._looked = time.monotonic()
        self.store.settle()
        return any(self._take(job_id) for job_id in self.store.waiting()[:1])

    def _inherit(self) -> None:
        """Let go of what a dead worker of this machine held: the lock is ours, so it is dead."""
        place = self.settings.folder / "worker.token"
        dead = place.read_text(encoding="utf-8") if place.exists() else ""
        place.write_text(self.token, encoding="utf-8")
        if dead and dead != self.token:
            for job_id, pid in self.store.held_by(dead):
                kill_stray(pid, dead)
                self.store.release(job_id, dead, "Its worker died.", died=True)
            self.store.leave(dead)

    def _sweep(self) -> None:
        """Remove the drafts of jobs that are done or cancelled, for good; keep those that nobody knows."""
        ended = {job.id for job in self.store.all(("done", "cancelled"), limit=1000)}
        for draft in self.settings.draft("*").parent.glob("*"):
            if draft.name in ended:
                shutil.rmtree(draft, ignore_errors=True)

    def _take(self, job_id: str | None) -> bool:
        """Do one job, if it is still to be had."""
        if not job_id or not self.store.claim(job_id, self.token):
            return False
        self._renewed = time.monotonic()
        child = start_child(self._child_command, self.settings)
        self._child, self._job_id = child, job_id
        try:
            self.store.report(job_id, self.token, pid=child.pid)
            self._watch(child, job_id)
        finally:
            code = self._dismiss(child)
            self._child = None
        self._conclude(job_id, code)
        self._looked = 0.0  # others may wait, this one again among them
        return True

    def _watch(self, child: subprocess.Popen[bytes], job_id: str) -> None:
        """Wait until the child has ended, or the job is no longer its own, or it must be made to end."""
        assert child.stdin is not None
        with contextlib.suppress(OSError):  # it may have died already
            child.stdin.write(job_id.encode() + b"\n")
            child.stdin.flush()
        wished: dict[str, float] = {}
        while child.poll() is None and time.monotonic() - self._renewed < self.settings.lease:
            if self._is_told_to_stop:
                return end(child, self.settings.grace)
            with contextlib.suppress(StorageError):
                if not self.store.holds(job_id, self.token):
                    return None
                wish = self.store.get(job_id).wish
                since = wished.setdefault(wish or "", time.monotonic())
                patience = self.settings.grace * {"cancel": 1, "pause": PAUSE}.get(wish or "", 0)
                if wish and time.monotonic() - since > patience:
                    return end(child, self.settings.grace)
            time.sleep(WATCH)
        return None

    def _dismiss(self, child: subprocess.Popen[bytes]) -> int:
        """Close a child's input, at which it leaves by itself, or is made to; return its exit code."""
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            return child.wait(self.settings.grace)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    def _conclude(self, job_id: str, code: int) -> None:
        """Bring a job whose child is gone to a state that is true."""
        died = not self._is_told_to_stop
        self.store.release(job_id, self.token, sentence_of(code), died)
        with contextlib.suppress(JobError):
            if self.store.get(job_id).state in ("done", "cancelled"):
                shutil.rmtree(self.settings.draft(job_id), ignore_errors=True)

    def _beat(self) -> None:
        """Write the heartbeat, and renew the lease as long as the child lives."""
        host = socket.gethostname()
        while not self._has_left.is_set():
            try:
                self.store.beat(self.token, host, os.getpid())
                child, job_id = self._child, self._job_id
                if child and child.poll() is None and self.store.renew(job_id, self.token):
                    self._renewed = time.monotonic()
            except StorageError as error:
                log.warning("no heartbeat: %s", error)
            self._has_left.wait(self.settings.heartbeat)
