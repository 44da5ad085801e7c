"""What a row of the table is to those who read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping


@dataclass(frozen=True)
class Job:
    """One row of the table.

    Attributes:
        lane: The queue it waits in; see `attnknn.jobs.lanes`.
        state: queued, running, paused, done, failed or cancelled.
        wish: What somebody asked a running job to do: cancel, pause, or nothing.
        progress: Share done, between 0 and 1.
        stage: What it is doing, in words.
        attempt: How often it was taken up.
        pid: The process that does it, on the machine of its worker.
        error: A sentence, if it failed.
        result: What it made, if it is done.
        created, started, ended: Seconds since 1970.
    """

    id: str
    kind: str
    title: str
    spec: dict[str, Any]
    owner: str
    lane: str
    state: str
    wish: str | None
    progress: float
    stage: str
    attempt: int
    pid: int | None
    created: float
    started: float | None
    ended: float | None
    error: str | None
    result: dict[str, Any] | None

    @classmethod
    def from_row(cls, row: RowMapping) -> Job:
        """Read a row of the table."""
        values = {name: row[name] for name in cls.__dataclass_fields__}
        values["spec"] = json.loads(row["spec"])
        values["result"] = json.loads(row["result"]) if row["result"] else None
        return cls(**values)

    @property
    def is_active(self) -> bool:
        """Whether it may still change by itself."""
        return self.state in ("queued", "running")

    @property
    def status(self) -> str:
        """The state in a word, with what was asked of it: cancelling, pausing."""
        asked = {"cancel": "cancelling", "pause": "pausing"}
        return asked[self.wish] if self.state == "running" and self.wish else self.state


@dataclass(frozen=True)
class Event:
    """One thing that a job said while it ran.

    A job that went on from its last checkpoint says some things twice: of two points of a curve with the same
    epoch, the later one counts.
    """

    id: int
    time: float
    kind: str
    data: dict[str, Any]

    @classmethod
    def from_row(cls, row: RowMapping) -> Event:
        """Read a row of the table."""
        return cls(row["id"], row["time"], row["kind"], json.loads(row["data"]))
