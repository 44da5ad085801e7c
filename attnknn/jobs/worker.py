"""The worker: one per machine, by a file lock; a heartbeat, and a thread for each lane of jobs.

Idle for long, it leaves. It never imports what jobs need: a crash in a library ends a child, and the job goes
on from its last checkpoint in the next one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from filelock import Timeout

from attnknn.errors import StorageError
from attnknn.jobs.lane_loop import LaneLoop, Shift
from attnknn.jobs.lanes import LANES
from attnknn.jobs.opening import make_folder
from attnknn.jobs.processes import kill_stray, lock_of, unwritable
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import JobStore

MOMENT = 0.1  # seconds between two looks at whether to leave
KNOCK = 1.0  # seconds to wait for the lock, which others try for a moment to see who is there

log = logging.getLogger("attnknn.jobs")


class Worker:
    """Takes up jobs, one of each lane at a time, until it is told to stop, or has been idle for long.

    Args:
        settings: Where jobs are, and how patient to be.
        child_command: What to run as a child; it gets the worker's token and its lane as its last arguments.
    """

    def __init__(self, settings: JobSettings, child_command: Sequence[str]) -> None:
        self.settings = settings
        make_folder(settings.folder)
        self.store = JobStore(settings)
        self.token = uuid.uuid4().hex
        self._shift = Shift()
        self._loops = [
            LaneLoop(lane, self.store, self.token, [*child_command, self.token, lane.name], self._shift)
            for lane in LANES.values()
        ]
        self._has_left = threading.Event()

    def run(self) -> bool:
        """Work; return False if this machine has a worker already.

        Raises:
            StorageError: The folder of jobs cannot be written.
        """
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self.stop())
        while self._work_under_lock():
            if self._shift.is_told_to_stop or not self._has_work():  # some may have come between the last look and here
                return True
        return False

    def stop(self) -> None:
        """Stop soon: the jobs at hand go back to the queue, with all that their checkpoints hold."""
        self._shift.is_told_to_stop = True

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
            with contextlib.suppress(StorageError):
                self.store.leave(self.token)
            lock.release()
        return True

    def _work(self) -> None:
        with contextlib.suppress(StorageError, OSError):
            self._inherit()
            self._sweep()
        self._shift.open()
        with ThreadPoolExecutor(len(self._loops)) as pool:
            lanes = [pool.submit(loop.run) for loop in self._loops]
            while not self._shift.is_over:
                time.sleep(MOMENT)
                if any(lane.done() for lane in lanes):  # it broke, and takes the others along
                    self.stop()
                self._shift.close_if_idle(self.settings.idle)
        for lane in lanes:
            lane.result()

    def _has_work(self) -> bool:
        try:
            return any(self.store.waiting(lane) for lane in LANES)
        except StorageError:
            return False

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

    def _beat(self) -> None:
        """Write the heartbeat, renew the leases of the jobs whose children live, and let go of those that ran out."""
        host = socket.gethostname()
        while not self._has_left.is_set():
            try:
                self.store.beat(self.token, host, os.getpid())
                for loop in self._loops:
                    loop.renew()
                self.store.settle()
            except StorageError as error:
                log.warning("no heartbeat: %s", error)
            self._has_left.wait(self.settings.heartbeat)
