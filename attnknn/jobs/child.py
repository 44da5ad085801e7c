"""The child: one process that does the jobs it is given, and ends when its worker does.

The worker writes ids of jobs to the child's standard input, and reads on its standard output which of them
have ended. When the input closes, the worker is gone or wants no more, and the child leaves at once; the lease
runs out, and another worker takes the job up.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import queue
import re
import signal
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from attnknn.errors import AttnKNNError, JobError, StorageError
from attnknn.jobs.context import Context, Lost, Stopped
from attnknn.jobs.processes import renice
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import JobStore

Work = Callable[[Context], Mapping[str, Any]]
ORPHANED = 3  # exit code of a child whose worker is gone, or whose job is another's
UNWRITTEN = 4  # exit code of a child that could not write how its job ended
AGAIN = 0.5  # seconds between two tries to write how a job ended
FULL = re.compile(
    "No space left|disk is full|quota exceeded|File too large|requested and [0-9]+ written", re.IGNORECASE
)
KEPT = "What was done is kept."

log = logging.getLogger("attnknn.jobs")


def serve(settings: JobSettings, token: str, kinds: Mapping[str, Work], warm_up: Callable[[], None]) -> None:
    """Do the jobs whose ids come in on standard input, one after another, until it closes.

    Args:
        settings: Where jobs are.
        token: Of the worker.
        kinds: What each kind of job does.
        warm_up: Called once before the first job, so that it begins at once. Where this fails, so will a job,
            and that one says why.
    """
    ids: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(ids,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the worker
    renice()
    to_worker = _keep_output()
    store = JobStore(settings)
    with contextlib.suppress(Exception):
        warm_up()
    while True:
        try:
            job_id = ids.get()
            do_job(store, job_id, token, kinds)
            print(job_id, file=to_worker, flush=True)
        except (Lost, BrokenPipeError):
            _leave()
        except StorageError as error:
            log.error("%s", error)
            os._exit(UNWRITTEN)


def do_job(store: JobStore, job_id: str, token: str, kinds: Mapping[str, Work]) -> None:
    """Do one job to its end, whatever that is, and write it into the table.

    Raises:
        Lost: The job belongs to another worker by now.
        StorageError: The table could not be written for a whole lease.
    """
    job = store.get(job_id)
    with Context(store, job, token, on_lost=_leave) as context:
        ending = _try(store, context, kinds)
    _insist(store, lambda: _end(context, store, token, ending))


def _try(store: JobStore, context: Context, kinds: Mapping[str, Work]) -> dict[str, Any]:
    """Do the job; return what the table is to say about how it ended, or nothing if it was asked to stop."""
    job = context.job
    try:
        if job.kind not in kinds:
            raise JobError(
                f"A job must be one of: {', '.join(kinds)}.", f"This one is {job.kind}.", "Update the worker."
            )
        context.draft.mkdir(parents=True, exist_ok=True)
        store.note(job)
        result = dict(kinds[job.kind](context))
    except Lost:
        raise
    except Stopped:
        return {}
    except AttnKNNError as error:
        return {"state": "failed", "error": str(error)}
    except BaseException as error:
        return {"state": "failed", "error": _sentence(error, context)}
    return {"state": "done", "progress": 1.0, "stage": "done", "result": result}


def _end(context: Context, store: JobStore, token: str, ending: Mapping[str, Any]) -> None:
    context.write()
    if ending:
        store.end(context.job.id, token, **ending)
    else:
        store.release(context.job.id, token)


def _insist(store: JobStore, write: Callable[[], None]) -> None:
    """Write, and try again for as long as a lease holds where the table cannot be written."""
    until = time.monotonic() + store.settings.lease
    while True:
        try:
            return write()
        except StorageError:
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN)


def _listen(ids: queue.Queue[str]) -> None:
    for line in sys.stdin:
        ids.put(line.strip())
    _leave()


def _keep_output() -> TextIO:
    """Return standard output for the worker alone; what a library prints goes nowhere."""
    to_worker = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return to_worker


def _leave() -> None:
    """End this process at once, from whatever thread, as a kill would."""
    os._exit(ORPHANED)


def _sentence(error: BaseException, context: Context) -> str:
    """Say what happened; the traceback goes to the worker's log."""
    code = getattr(error, "errno", None)
    if isinstance(error, MemoryError):
        return f"The job needed more memory than there is. {KEPT} Choose a smaller batch or model, and resume it."
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or FULL.search(str(error)):
        return f"The disk is full. {KEPT} Make room, and resume the job."
    if code in (errno.EACCES, errno.EROFS, errno.EPERM):
        place = getattr(error, "filename", None) or context.draft
        return f"{place} cannot be written. {KEPT} Allow writing there, and resume the job."
    number = uuid.uuid4().hex[:8]
    log.error("job %s failed (%s)\n%s", context.job.id, number, "".join(traceback.format_exception(error)))
    context.say("log", {"line": json.dumps({"number": number, "error": type(error).__name__})})
    return f"The job broke, and the fault is ours. The worker's log has the details under {number}."
