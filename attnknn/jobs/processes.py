"""Processes: how a child and a worker are started, what their ends mean, and how they are made to leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from attnknn.errors import StorageError
from attnknn.jobs.opening import make_folder
from attnknn.jobs.settings import JobSettings

NICENESS = 10
AUTOGROUP = Path("/proc/self/autogroup")
LONGEST_LOG = 2**20  # bytes, after which a worker's log is put aside for a new one
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMBA", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""A child's share of the machine: the page must stay quick while it works."""

CRASH = "A library crashed ({}). Resume it; if it crashes again, report it."
KILLED = "Its process was killed, most likely for want of memory. Choose a smaller batch or model, and resume it."
EXITS = {
    -4: CRASH.format("illegal instruction"),
    -6: CRASH.format("abort"),
    -7: CRASH.format("bus error; is the disk full?"),
    -8: CRASH.format("arithmetic error"),
    -9: KILLED,
    -11: CRASH.format("segmentation fault"),
    -15: "Its process was terminated from outside. Resume it.",
    3: "Its process lost its worker. Resume it.",
    4: "What it made could not be written into the table of jobs. Make room, and resume it.",
    137: KILLED,
    3221225477: CRASH.format("access violation"),
    3221225501: CRASH.format("illegal instruction"),
}


def sentence_of(code: int) -> str:
    """Say what an exit code means; negative ones are signals.

    Example:
        >>> sentence_of(-11)
        'A library crashed (segmentation fault). Resume it; if it crashes again, report it.'
    """
    return EXITS.get(code, f"Its process ended with code {code}. Resume it; if it happens again, report it.")


def start_child(command: Sequence[str], settings: JobSettings) -> subprocess.Popen[bytes]:
    """Start a child that listens on its standard input, and leaves when that closes; it answers on its output."""
    environment = {**ONE_THREAD, **os.environ, **settings.to_environment()}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def start_worker(command: Sequence[str], settings: JobSettings) -> subprocess.Popen[bytes]:
    """Start a worker that outlives this process, and writes its log into the folder of jobs.

    Raises:
        StorageError: The folder cannot be written.
    """
    make_folder(settings.folder)
    place = settings.folder / "worker.log"
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    try:
        if place.exists() and place.stat().st_size > LONGEST_LOG:
            place.replace(place.with_suffix(".log.1"))
        with place.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(settings), **apart
            )
    except OSError as error:
        raise unwritable(settings, error) from error


def unwritable(settings: JobSettings, error: OSError) -> StorageError:
    """Say that the folder of jobs cannot be written."""
    expected, received = "Jobs need a folder that can be written.", f"{settings.folder}: {error.strerror}."
    return StorageError(expected, received, "Allow writing there, or choose another with ATTNKNN_JOBS.")


def lock_of(settings: JobSettings) -> FileLock:
    """Return the lock that a worker holds as long as it lives: one per folder, so one per machine."""
    return FileLock(settings.folder / "worker.lock")


def has_worker_here(settings: JobSettings) -> bool:
    """Whether a worker of this folder lives; exact, where a heartbeat is some seconds old.

    Raises:
        StorageError: The folder cannot be written.
    """
    make_folder(settings.folder)
    try:
        with lock_of(settings).acquire(blocking=False):
            return False
    except Timeout:
        return True
    except OSError as error:
        raise unwritable(settings, error) from error


def renice() -> None:
    """Let others go first; a process does so itself, since nothing may run between fork and exec.

    Linux may share its cores between sessions first, and heed niceness only inside of one ("autogroup"). So the
    process moves into a session of its own, which is nice as a whole.
    """
    nice = getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", NICENESS)
    psutil.Process().nice(nice)
    if AUTOGROUP.exists():
        with suppress(OSError):
            os.setsid()
            AUTOGROUP.write_text(str(NICENESS), encoding="ascii")


def end(child: subprocess.Popen[bytes], grace: float) -> None:
    """Terminate a process, and after the grace kill it."""
    child.terminate()
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        child.kill()


def kill_stray(pid: int | None, token: str) -> None:
    """Kill the child that a dead worker left behind, if it is still there and really is that child."""
    try:
        if pid and token in psutil.Process(pid).cmdline():
            process = psutil.Process(pid)
            process.kill()
            process.wait(5)
    except psutil.Error:
        return


def _environment(settings: JobSettings) -> Mapping[str, str]:
    """What a worker reads its settings from; and where it finds this package, wherever it is started."""
    package = Path(__file__).resolve().parents[2]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **settings.to_environment(), "PYTHONPATH": os.pathsep.join(paths)}
