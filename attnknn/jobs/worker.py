"""The worker: answers the doorbell, gives each job a child process, and watches over it.

One per machine, by a file lock; idle for long, it leaves. It never imports what jobs need: a crash in a
library ends a child, and the job goes on from its last checkpoint in the next one.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence

from filelock import FileLock, Timeout

from attnknn.jobs.doorbell import Doorbell
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import JobStore

WATCH = 0.05  # seconds between two looks at a child
LOOK = 1.0  # seconds between two looks at the table for work whose ring was lost
NICENESS = 10
CHILD_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
EXITS = {
    -signal.SIGKILL: "Its process was killed, most likely for want of memory. Choose a smaller batch, and resume it.",
    -signal.SIGSEGV: "A library crashed (segmentation fault). Resume it; if it crashes again, report it.",
    -signal.SIGABRT: "A library gave up (abort). Resume it; if it happens again, report it.",
    -signal.SIGTERM: "Its process was terminated from outside. Resume it.",
}

log = logging.getLogger("attnknn.jobs")


class Worker:
    """Takes up jobs one at a time until it is told to stop, or has been idle for long.

    Args:
        settings: Where jobs are, and how patient to be.
        child_command: What to run as a child; it gets the worker's token as its last argument.
    """

    def __init__(self, settings: JobSettings, child_command: Sequence[str]) -> None:
        self.settings = settings
        self.store = JobStore(settings)
        self.token = uuid.uuid4().hex
        self._child_command = [*child_command, self.token]
        self._doorbell = Doorbell(settings.queue)
        self._stop = threading.Event()
        self._holding: str | None = None
        self._looked = 0.0

    def run(self) -> bool:
        """Work; return at once, with False, if this machine has a worker already."""
        lock = FileLock(self.settings.folder / "worker.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop.set())
        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        try:
            self._work()
        finally:
            self._stop.set()
            beating.join(5)
            self.store.leave(self.token)
            lock.release()
        return True

    def take(self, job_id: str) -> None:
        """Do one job, if it is still to be had."""
        if not self.store.claim(job_id, self.token):
            return
        self._holding = job_id
        try:
            self._watch(job_id)
        finally:
            self._holding = None

    def _work(self) -> None:
        last = time.monotonic()
        while not self._stop.is_set() and time.monotonic() - last < self.settings.idle:
            if self._answer_doorbell() or self._look_at_table():
                last = time.monotonic()

    def _answer_doorbell(self) -> bool:
        job_id = self._doorbell.answer()
        if job_id is None:
            self._stop.wait(WATCH)
            return False
        self.take(job_id)
        return True

    def _look_at_table(self) -> bool:
        if time.monotonic() - self._looked < LOOK:
            return False
        self._looked = time.monotonic()
        waiting = self.store.waiting()
        if waiting:
            self.take(waiting[0])
        return bool(waiting)

    def _watch(self, job_id: str) -> None:
        child = self._start_child()
        assert child.stdin is not None
        child.stdin.write(job_id.encode() + b"\n")
        child.stdin.flush()
        wished: float | None = None
        while child.poll() is None:
            job = self.store.get(job_id)
            if job.state != "running":
                break
            if self._stop.is_set():
                self._end(child)
                break
            if job.wish == "cancel":
                wished = wished or time.monotonic()
                if time.monotonic() - wished > self.settings.grace:
                    self._end(child)
                    break
            time.sleep(WATCH)
        child.stdin.close()
        code = self._wait(child)
        self._conclude(job_id, code)

    def _conclude(self, job_id: str, code: int) -> None:
        """Bring a job whose child is gone to a state that is true."""
        job = self.store.get(job_id)
        if job.state != "running":
            return
        if job.wish:
            self.store.end(job_id, self.token, {"cancel": "cancelled", "pause": "paused"}[job.wish])
        elif self._stop.is_set() or job.attempt < self.settings.attempts:
            self.store.say(
                job_id, "log", {"line": f"interrupted (exit code {code}); going on from the last checkpoint"}
            )
            self.store.end(job_id, self.token, "queued")
        else:
            why = EXITS.get(code, f"Its process ended with code {code}. Resume it; if it happens again, report it.")
            self.store.end(job_id, self.token, "failed", error=f"The job failed {job.attempt} times. {why}")

    def _start_child(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._child_command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**CHILD_ENVIRONMENT, **os.environ},
            preexec_fn=None if sys.platform == "win32" else lambda: os.nice(NICENESS),
        )

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Terminate, and after the grace kill."""
        child.terminate()
        try:
            child.wait(self.settings.grace)
        except subprocess.TimeoutExpired:
            child.kill()

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        """Wait for a child whose input is closed; it leaves by itself, or is made to."""
        try:
            return child.wait(self.settings.grace)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    def _beat(self) -> None:
        host = socket.gethostname()
        while not self._stop.is_set():
            try:
                self.store.beat(self.token, host, os.getpid())
                if self._holding:
                    self.store.renew(self._holding, self.token)
            except Exception:
                log.exception("a heartbeat could not be written")
            self._stop.wait(self.settings.heartbeat)
