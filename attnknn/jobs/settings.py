"""Where jobs are kept, and how patient everybody is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = {"lease": float, "heartbeat": float, "grace": float, "idle": float, "rest": float, "attempts": int}


@dataclass(frozen=True)
class JobSettings:
    """Frozen choices of the job layer; times are in seconds.

    Attributes:
        folder: Holds the databases and the worker's lock and log; created on first use.
        database: URL of the jobs table; SQLite in `folder` by default, or PostgreSQL.
        queue: URL of the doorbell; SQLite in `folder` by default, or Redis, or PostgreSQL.
        lease: How long a claim holds without a heartbeat.
        heartbeat: How often a worker renews its lease.
        grace: How long a cancelled child may take before it is terminated; again as long until it is killed.
        idle: How long a worker without work stays.
        rest: How long a child without work stays, and holds its memory.
        attempts: How often a job's process may die without the job getting further.
        drafts: Holds what jobs go on from; `folder`/drafts by default. Machines that share jobs share it, too.
    """

    folder: Path
    database: str
    queue: str
    lease: float = 10.0
    heartbeat: float = 1.0
    grace: float = 1.0
    idle: float = 600.0
    rest: float = 300.0
    attempts: int = 4
    drafts: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> JobSettings:
        """Read ATTNKNN_JOBS and ATTNKNN_DRAFTS (folders), _DB_URL, _QUEUE_URL, and _LEASE, _GRACE, _IDLE, ….

        The default folder is `~/.cache/attnknn/jobs`, or what XDG_CACHE_HOME says. The doorbell is where the
        table is, unless it is said to be elsewhere.
        """
        cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(environment.get("ATTNKNN_JOBS") or cache / "attnknn" / "jobs")
        database = environment.get("ATTNKNN_DB_URL") or f"sqlite:///{folder / 'jobs.db'}"
        beside = f"sqlite:///{folder / 'queue.db'}" if database.startswith("sqlite") else database
        drafts = environment.get("ATTNKNN_DRAFTS")
        patience: dict[str, Any] = {
            name: kind(environment[f"ATTNKNN_{name.upper()}"])
            for name, kind in PATIENCE.items()
            if environment.get(f"ATTNKNN_{name.upper()}")
        }
        queue = environment.get("ATTNKNN_QUEUE_URL") or beside
        return cls(folder, database, queue, drafts=Path(drafts) if drafts else None, **patience)

    def to_environment(self) -> dict[str, str]:
        """Return the variables from which another process reads the same settings.

        Example:
            >>> settings = JobSettings(Path("jobs"), "sqlite:///jobs/jobs.db", "redis://host/0", lease=2.0)
            >>> JobSettings.from_environment(settings.to_environment()) == settings
            True
        """
        variables = {f"ATTNKNN_{name.upper()}": str(getattr(self, name)) for name in PATIENCE}
        variables |= {"ATTNKNN_JOBS": str(self.folder), "ATTNKNN_DB_URL": self.database}
        variables |= {"ATTNKNN_QUEUE_URL": self.queue, "ATTNKNN_DRAFTS": str(self.drafts or "")}
        return variables

    def draft(self, job_id: str) -> Path:
        """Return the folder in which a job keeps its checkpoint and its unfinished work."""
        return (self.drafts or self.folder / "drafts") / job_id
