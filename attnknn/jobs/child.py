"""The child: one process that does one job, and ends when its worker does.

The worker writes ids of jobs to the child's standard input. When that pipe closes, the worker is gone,
and the child leaves at once; the lease runs out, and another worker takes the job up.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import queue
import shutil
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attnknn.errors import AttnKNNError
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import Job, JobStore

Work = Callable[["Context"], Mapping[str, Any]]
ORPHANED = 3  # exit code of a child whose worker is gone
LOOK = 0.2  # seconds between two looks at what is wished
WRITE = 0.25  # seconds between two writes of progress

log = logging.getLogger("attnknn.jobs")


class Stopped(BaseException):
    """The job was asked to stop; raised between two steps, so that files are whole."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class Context:
    """What a job may know and say while it runs.

    Attributes:
        job: Its row, as it was when it was taken up.
        draft: A folder of its own that outlives a crash: its checkpoint, and its unfinished work.
    """

    def __init__(self, store: JobStore, job: Job, token: str) -> None:
        self.job = job
        self.draft: Path = store.settings.draft(job.id)
        self._store, self._token = store, token
        self._looked = self._wrote = 0.0

    def report(self, stage: str, done: float, numbers: Mapping[str, Any] | None = None) -> None:
        """Tell how far the job is; written at most four times a second. Stops the job if that is wished."""
        self.pause_point()
        if time.monotonic() - self._wrote >= WRITE or done >= 1:
            self._wrote = time.monotonic()
            self._store.report(self.job.id, self._token, stage=stage, progress=min(max(done, 0.0), 1.0))
        if numbers:
            self.say("numbers", {"stage": stage, **numbers})

    def say(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event: a point of a curve, a line of the log."""
        self._store.say(self.job.id, kind, data)

    def pause_point(self) -> None:
        """Stop here if somebody wished it; call it wherever nothing would be lost.

        Raises:
            Stopped: A cancel or a pause is wished, or the job belongs to another worker by now.
        """
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        wish = self._store.get(self.job.id).wish
        if wish:
            raise Stopped({"cancel": "cancelled", "pause": "paused"}[wish])


def do_job(store: JobStore, job_id: str, token: str, kinds: Mapping[str, Work]) -> None:
    """Do one job to its end, whatever that is, and write it into the table."""
    job = store.get(job_id)
    context = Context(store, job, token)
    store.report(job_id, token, pid=os.getpid())
    try:
        context.draft.mkdir(parents=True, exist_ok=True)
        result = kinds[job.kind](context)
        store.end(job_id, token, "done", progress=1.0, stage="done", result=dict(result))
    except Stopped as stopped:
        store.end(job_id, token, stopped.state)
        if stopped.state == "paused":
            return
    except AttnKNNError as error:
        store.end(job_id, token, "failed", error=str(error))
        return
    except BaseException as error:
        store.end(job_id, token, "failed", error=_sentence(error, context))
        return
    shutil.rmtree(context.draft, ignore_errors=True)


def serve(settings: JobSettings, token: str, kinds: Mapping[str, Work]) -> None:
    """Do the jobs whose ids come in on standard input, one after another, until it closes."""
    ids: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(ids,), daemon=True).start()
    store = JobStore(settings)
    while True:
        do_job(store, ids.get(), token, kinds)


def _listen(ids: queue.Queue[str]) -> None:
    for line in sys.stdin:
        ids.put(line.strip())
    os._exit(ORPHANED)


def _sentence(error: BaseException, context: Context) -> str:
    """Say what happened; the traceback goes to the job's log."""
    if isinstance(error, MemoryError):
        return "The job needed more memory than there is. Choose a smaller batch or a smaller model, and resume it."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full. What was done is kept. Make room, and resume the job."
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"{error.filename} cannot be written. What was done is kept. Allow writing there, and resume the job."
    number = uuid.uuid4().hex[:8]
    log.error("job %s failed (%s)\n%s", context.job.id, number, traceback.format_exc())
    context.say("log", {"line": json.dumps({"number": number, "error": type(error).__name__})})
    return f"The job broke, and the fault is ours. The worker's log has the details under {number}."
