"""Where jobs are kept, and how patient everybody is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class JobSettings:
    """Frozen choices of the job layer; times are in seconds.

    Attributes:
        folder: Holds the databases and the drafts of running jobs; created on first use.
        database: URL of the jobs table; SQLite in `folder` by default, or PostgreSQL.
        queue: URL of the doorbell; SQLite in `folder` by default, or Redis, or PostgreSQL.
        lease: How long a claim holds without a heartbeat.
        heartbeat: How often a worker renews its leases.
        grace: How long a cancelled child may take before it is terminated; again as long until it is killed.
        idle: How long a worker without work stays.
        attempts: How often a job is tried when its child or worker dies.
    """

    folder: Path
    database: str
    queue: str
    lease: float = 10.0
    heartbeat: float = 1.0
    grace: float = 1.0
    idle: float = 600.0
    attempts: int = 4

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> JobSettings:
        """Read ATTNKNN_JOBS (a folder), ATTNKNN_DB_URL, ATTNKNN_QUEUE_URL and ATTNKNN_LEASE, _GRACE, _IDLE.

        The default folder is `~/.cache/attnknn/jobs`, or what XDG_CACHE_HOME says.
        """
        cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(environment.get("ATTNKNN_JOBS") or cache / "attnknn" / "jobs")
        patience: dict[str, Any] = {
            name: float(environment[f"ATTNKNN_{name.upper()}"])
            for name in ("lease", "grace", "idle", "heartbeat")
            if f"ATTNKNN_{name.upper()}" in environment
        }
        return cls(
            folder,
            environment.get("ATTNKNN_DB_URL") or f"sqlite:///{folder / 'jobs.db'}",
            environment.get("ATTNKNN_QUEUE_URL") or f"sqlite:///{folder / 'queue.db'}",
            **patience,
        )

    def draft(self, job_id: str) -> Path:
        """Return the folder in which a job keeps its checkpoint and its unfinished work."""
        return self.folder / "drafts" / job_id
