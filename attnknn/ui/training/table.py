"""The table of jobs, as this page reads it. Nothing about a job is kept in a session.

Many visitors look at the same jobs every second; they share one look per quarter of a second.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import streamlit as st

from attnknn.errors import StorageError
from attnknn.jobs import Event, Job, JobSettings, JobStore

T = TypeVar("T")
SHARED = 0.25  # seconds
LISTED = 200
LANE = "long"


def store() -> JobStore:
    """Return the open table; it is opened again where another file has taken its place."""
    settings = JobSettings.from_environment()
    return _open(settings.database, str(settings.folder), _identity(settings))


def is_polling() -> bool:
    """Whether the page looks again by itself; ATTNKNN_POLL=0 says that it does not."""
    return os.environ.get("ATTNKNN_POLL") != "0"


def all_jobs() -> list[Job]:
    """List long jobs, the newest first; a quick one is over before anybody could read of it."""
    return _all_jobs(store().settings.database, _moment())


def events_of(job: Job) -> list[Event]:
    """List what a job said, oldest first."""
    return _events_of(store().settings.database, job.id, _moment() if job.is_active else 0)


def place_in_queue(job: Job) -> int:
    """Say how many jobs go before this one: those that run, and those that wait for longer."""
    running = sum(one.state == "running" for one in all_jobs())
    return running + read(lambda table: table.place_in_queue(job))


def changed() -> None:
    """Look again at once: this visitor has just changed something."""
    _all_jobs.clear()
    _events_of.clear()


def owner() -> str:
    """Name this visitor, so that nobody fills the queue: the browser's cookie, or else the session."""
    session = st.session_state.setdefault("visitor", uuid.uuid4().hex)
    cookie = st.context.cookies.get("_streamlit_xsrf")
    known = cookie if isinstance(cookie, str) else session
    return "page-" + sha256(known.encode()).hexdigest()[:16]


def read(ask: Callable[[JobStore], T]) -> T:
    """Ask the table; one that cannot be read is opened again first, which moves it aside if it is damaged.

    Raises:
        StorageError: That did not help.
    """
    try:
        return ask(store())
    except StorageError:
        _open.clear()
        return ask(store())


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(database: str, folder: str, identity: int) -> JobStore:
    return JobStore(JobSettings.from_environment())


@st.cache_data(max_entries=4, show_spinner=False)
def _all_jobs(database: str, moment: int) -> list[Job]:
    return read(lambda table: table.all(limit=LISTED, lane=LANE))


@st.cache_data(max_entries=64, show_spinner=False)
def _events_of(database: str, job_id: str, moment: int) -> list[Event]:
    return read(lambda table: table.events(job_id))


def _moment() -> int:
    """Number the moment we are in; a page that does not look by itself always looks afresh."""
    return int(time.monotonic() / SHARED) if is_polling() else time.monotonic_ns()


def _identity(settings: JobSettings) -> int:
    """Name the file that holds the table, if it is one."""
    if not settings.database.startswith("sqlite"):
        return 0
    path = settings.database.removeprefix("sqlite:///")
    try:
        return os.stat(path).st_ino  # noqa: PTH116
    except OSError:
        return 0
