"""SQLite files that are damaged: moved aside with a notice, never deleted."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from filelock import FileLock

MARK = "damaged"
STAMP = "%Y%m%d-%H%M%S"
NOTICE_DAYS = 7


def move_aside_if_damaged(path: Path) -> bool:
    """Rename a SQLite file that is not a sound database, with its journal; say whether that was done."""
    if is_sound(path):
        return False
    with FileLock(path.with_name(f"{path.name}.lock"), timeout=10):
        if is_sound(path):  # somebody else was faster
            return False
        aside = path.with_name(f"{path.name}.{MARK}-{time.strftime(STAMP)}")
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
    return True


def is_sound(path: Path) -> bool:
    """Say whether a SQLite file is absent, empty or readable from end to end."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    try:
        connection = sqlite3.connect(path, timeout=10)
    except sqlite3.Error:
        return True  # it cannot be opened: not a matter of its content
    try:
        return bool(connection.execute("PRAGMA quick_check").fetchone() == ("ok",))
    except sqlite3.OperationalError:
        return True  # locked or unreadable: likewise
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


def notice_of(path: Path) -> str | None:
    """Return a sentence for the visitor if a file of that name was moved aside in the last days."""
    since = time.strftime(STAMP, time.localtime(time.time() - NOTICE_DAYS * 86400))
    found = sorted(path.parent.glob(f"{path.name}.{MARK}-{'[0-9]' * 8}-{'[0-9]' * 6}"))
    if not found or found[-1].name.removeprefix(f"{path.name}.{MARK}-") < since:
        return None
    kept = f"It was kept as {found[-1].name}, and a new one was started; nothing was deleted."
    return f"The database of jobs was damaged. {kept} Unfinished runs are back in the list, paused."
