"""The lanes: queues side by side, so that a visitor who waits for a moment's work does not wait for an hour's.

    long     a new child for each job, started ahead of it, so that its imports are done when the job comes
    quick    one child that does many jobs; started when the first one comes, and closed after a rest

One job at a time runs in each lane of a worker.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lane:
    """One queue of jobs, and how its children live.

    Attributes:
        is_kept: Whether one child does many jobs; otherwise each job has a new one, started ahead.
        watch: Seconds between two looks at the doorbell.
    """

    name: str
    is_kept: bool
    watch: float


LANES = {lane.name: lane for lane in (Lane("long", is_kept=False, watch=0.1), Lane("quick", is_kept=True, watch=0.02))}
