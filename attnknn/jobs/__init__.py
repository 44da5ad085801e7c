"""Work in the background: a table that is the only truth, a doorbell, a worker, and children in two lanes.

    submit ──→ jobs table ──→ doorbell (huey: one job id, as JSON) ──→ worker ──→ child process
                   ↑  state, progress, lease, wishes, events                │        │
                   └──────────────── heartbeat, lease ─────────────────────┘        │
                   └──────────────── progress, events, checkpoint, result ──────────┘

A lost ring loses nothing: the worker reads the table as well. A dead worker loses nothing: its lease runs
out, and another takes the job up from its last checkpoint. This package knows nothing of training: what a job
does is a function `(Context) -> result` that the child is told to import.
"""

from attnknn.jobs.job import Event, Job
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.store import JobStore

__all__ = ["Event", "Job", "JobSettings", "JobStore"]
