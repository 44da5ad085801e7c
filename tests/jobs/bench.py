"""What a test of jobs does again and again: submit, start workers, wait, kill, and see that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import psutil

from attnknn.jobs import Job, JobSettings, JobStore
from attnknn.jobs.doorbell import Doorbell

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 30.0


class Bench:
    """One set of tables and a queue, and the processes that a test started on them."""

    def __init__(self, settings: JobSettings) -> None:
        self.settings = settings
        self.processes: list[subprocess.Popen[bytes]] = []

    @cached_property
    def store(self) -> JobStore:
        return JobStore(self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *facts: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        if "store" in vars(self):
            self.store.close()
        wait_until(lambda: not children_of(self.settings), "children leave with their workers")

    def submit(self, to: int = 5, owner: str = "somebody", lane: str = "long", **spec: Any) -> Job:
        job = self.store.submit("count", "Counting", {"to": to, "for": owner, **spec}, owner, lane)
        Doorbell(self.settings.queue).ring(job.id, lane)
        return job

    def start(
        self, role: str = "worker", folder: Path | None = None, warm_up: str = "", **changes: Any
    ) -> subprocess.Popen[bytes]:
        """Start a worker; with a folder of its own, it is one of another machine."""
        settings = replace(self.settings, folder=folder or self.settings.folder, drafts=self.drafts, **changes)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.toy", role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, **settings.to_environment(), "WARM_UP": warm_up},
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def children(self, lane: str) -> list[int]:
        """List the processes that do the jobs of a lane, or wait for one."""
        found = []
        for process in children_of(self.settings):
            with suppress(psutil.Error):
                if process.cmdline()[-1] == lane:
                    found.append(process.pid)
        return found

    @property
    def drafts(self) -> Path:
        return self.settings.draft("*").parent

    def wait_for(self, job: Job, *states: str, seconds: float = PATIENCE) -> Job:
        what = f"the job is {' or '.join(states)}"
        wait_until(lambda: self.store.get(job.id).state in states, what, self.look(job), seconds)
        return self.store.get(job.id)

    def wait_for_number(self, job: Job, number: int = 1) -> Job:
        """Wait until the job runs and has counted so far."""

        def has_counted() -> bool:
            row = self.store.get(job.id)
            return row.state == "running" and row.pid is not None and row.progress * row.spec["to"] >= number - 1e-9

        wait_until(has_counted, f"it has counted to {number}", self.look(job))
        return self.store.get(job.id)

    def look(self, job: Job) -> Callable[[], object]:
        return lambda: (self.store.get(job.id), self.said(job))

    def said(self, job: Job) -> list[str]:
        return [event.data["line"] for event in self.store.events(job.id, kind="log")]

    def numbers(self, job: Job) -> list[int]:
        return [event.data["number"] for event in self.store.events(job.id, kind="numbers")]


def wait_until(
    condition: Callable[[], bool], what: str, look: Callable[[], object] = str, seconds: float = PATIENCE
) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not in {seconds:g} s: {what}; {look()}"
        time.sleep(0.02)


def kill(process: int | subprocess.Popen[bytes]) -> None:
    """Kill -9, and wait for a process of our own."""
    os.kill(process if isinstance(process, int) else process.pid, signal.SIGKILL)
    if not isinstance(process, int):
        process.wait()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has waited for does not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def children_of(settings: JobSettings) -> list[psutil.Process]:
    """Every process of a toy that works on these tables, whoever its parent is by now."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_toy = "tests.jobs.toy" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
            if is_toy and process.environ().get("ATTNKNN_DB_URL") == settings.database:
                found.append(process)
    return found
