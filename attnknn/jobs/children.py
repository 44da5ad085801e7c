"""The children of one lane: taken for a job, kept or dismissed after it, and closed when they rest for long."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence

from attnknn.jobs.lanes import Lane
from attnknn.jobs.processes import end, start_child
from attnknn.jobs.settings import JobSettings


class Child:
    """A process that does the jobs whose ids it is given, and says of each that it has ended."""

    def __init__(self, command: Sequence[str], settings: JobSettings) -> None:
        self._process = start_child(command, settings)
        self._grace = settings.grace
        self._ended = ""
        self._has_news = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def give(self, job_id: str) -> None:
        """Give it a job."""
        assert self._process.stdin is not None
        self._has_news.clear()
        self._ended = ""
        with contextlib.suppress(OSError):  # it may have died already
            self._process.stdin.write(job_id.encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, job_id: str, seconds: float) -> bool:
        """Wait for the end of its job, or its own; return whether the job has ended."""
        self._has_news.wait(seconds)
        return self._ended == job_id

    def end(self) -> None:
        """Make it end in the middle of its job."""
        end(self._process, self._grace)

    def dismiss(self) -> int:
        """Close its input, at which it leaves by itself, or is made to; return its exit code."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            return self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._ended = line.decode(errors="replace").strip()
                self._has_news.set()
        self._process.wait()
        self._has_news.set()


class Children:
    """The children of one lane, of which at most one waits for a job; for one thread only.

    Args:
        lane: How they live.
        command: What to run as a child.
        settings: How long they may rest, and how patient to be.
    """

    def __init__(self, lane: Lane, command: Sequence[str], settings: JobSettings) -> None:
        self._lane, self._command, self._settings = lane, command, settings
        self._waiting: Child | None = None
        self._since = 0.0

    def take(self) -> Child:
        """Take the child that waits, or a new one."""
        child, self._waiting = self._waiting, None
        return child if child and child.is_alive else Child(self._command, self._settings)

    def part(self, child: Child, is_free: bool) -> int | None:
        """Keep a child for the next job if that is the way of the lane, or dismiss it.

        Args:
            child: One that was taken.
            is_free: Whether its job has ended.

        Returns:
            Its exit code, or None if it is kept.
        """
        if is_free and self._lane.is_kept:
            self._wait(child)
            return None
        return child.dismiss()

    def start_ahead(self) -> None:
        """Start the next job's child, if that is the way of the lane; call it once a job, as it may die at once."""
        if not self._lane.is_kept and self._waiting is None:
            self._wait(Child(self._command, self._settings))

    def tidy(self) -> None:
        """Close a child that has rested for long, or has died."""
        child = self._waiting
        if child and (not child.is_alive or time.monotonic() - self._since > self._settings.rest):
            self.close()

    def close(self) -> None:
        """Close the child that waits."""
        child, self._waiting = self._waiting, None
        if child:
            child.dismiss()

    def _wait(self, child: Child) -> None:
        self._waiting, self._since = child, time.monotonic()
