"""The worker's side of the table: claim a job, keep it, tell of it, and let it go.

    queued ──claim──→ running ──end──→ done, failed
       ↑                 │
       └───release───────┴──→ cancelled, paused (if that was wished), failed (if it keeps dying)

A job is a worker's as long as its token stands in the row. Who lost it (the lease ran out, another took it)
can change nothing any more.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, and_, case, delete, func, insert, literal, or_, select, update

from attnknn.errors import StorageError
from attnknn.jobs.access import Access, change
from attnknn.jobs.table import ENDED, events, jobs, workers

FRESH = 5.0  # seconds since the last heartbeat of a worker that counts as alive
FORGET = 86400.0  # seconds after which a worker without a heartbeat is forgotten
LOST = "The worker that did it is gone."

Said = tuple[str, Mapping[str, Any]]
"""The kind and the data of an event."""

log = logging.getLogger("attnknn.jobs")


class Claims(Access):
    """What workers and children do with the table."""

    def claim(self, job_id: str, token: str) -> bool:
        """Take a queued job; at most one worker gets it."""
        return self._change(
            job_id,
            jobs.c.state == "queued",
            state="running",
            worker=token,
            lease_until=self._now() + self.settings.lease,
            attempt=jobs.c.attempt + 1,
            started=func.coalesce(jobs.c.started, self._now()),
            pid=None,
        )

    def renew(self, job_id: str, token: str) -> bool:
        """Renew a lease; False if the job is no longer this worker's."""
        return self._change(job_id, _held_by(token), lease_until=self._now() + self.settings.lease)

    def holds(self, job_id: str, token: str) -> bool:
        """Whether a job runs under this token."""
        return self._count(jobs.c.id == job_id, _held_by(token)) == 1

    def report(self, job_id: str, token: str, said: Iterable[Said] = (), **values: Any) -> bool:
        """Write progress, stage or pid of a job that is this worker's, and what it said; all or nothing.

        Progress beyond what the job reached before forgives the deaths of its processes.
        """
        if "progress" in values:
            further = jobs.c.furthest < values["progress"]
            values["furthest"] = case((further, values["progress"]), else_=jobs.c.furthest)
            values["deaths"] = case((further, 0), else_=jobs.c.deaths)
        if "stage" in values:
            values["stage"] = str(values["stage"])[:200]
        rows = [_event(job_id, *one) for one in said]
        with self._connect() as connection:
            mine = change(connection, job_id, _held_by(token), **(values or {"worker": token}))
            if mine and rows:
                connection.execute(insert(events), rows)
        return mine

    def end(self, job_id: str, token: str, state: str, **values: Any) -> bool:
        """Bring a running job of this worker to `done` or `failed`."""
        if "result" in values:
            values["result"] = json.dumps(values["result"])
        left = {"wish": None, "worker": None, "lease_until": None, "pid": None}
        return self._change(job_id, _held_by(token), state=state, ended=self._now(), **left, **values)

    def release(self, job_id: str, token: str, why: str = "", died: bool = False) -> bool:
        """Let go of a running job: cancelled or paused if that was wished, else queued again.

        Args:
            job_id: The job.
            token: Of the worker that holds it.
            why: What happened, if a process died: a sentence.
            died: Count it; a job that keeps dying without getting further has failed.
        """
        if not self._let_go(job_id, _held_by(token), why, died):
            return False
        if died and why:
            self.say(job_id, "log", {"line": why})
        return True

    def settle(self) -> None:
        """Let go of every job whose worker is gone: the lease has run out, and nobody renewed it."""
        lost = self._is_lost()
        for row in self._rows(select(jobs.c.id).where(lost)):
            if self._let_go(row["id"], lost, LOST, died=True):
                self.say(row["id"], "log", {"line": LOST})

    def waiting(self, lane: str) -> list[str]:
        """List the ids of the queued jobs of a lane, the longest waiting first."""
        query = select(jobs.c.id).where(jobs.c.state == "queued", jobs.c.lane == lane).order_by(jobs.c.created)
        return [row["id"] for row in self._rows(query)]

    def held_by(self, token: str) -> list[tuple[str, int | None]]:
        """List ids and processes of the jobs that run under a token."""
        return [(row["id"], row["pid"]) for row in self._rows(select(jobs.c.id, jobs.c.pid).where(_held_by(token)))]

    def say(self, job_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event."""
        with self._connect() as connection:
            connection.execute(insert(events).values(_event(job_id, kind, data)))

    def beat(self, token: str, host: str, pid: int) -> None:
        """Write the heartbeat of a worker, and forget those long gone."""
        now = self._now()
        with self._connect() as connection:
            found = connection.execute(update(workers).where(workers.c.token == token).values(heartbeat=now))
            if found.rowcount == 0:
                row = {"token": token, "host": host, "pid": pid, "started": now, "heartbeat": now}
                connection.execute(delete(workers).where(workers.c.heartbeat < now - FORGET))
                connection.execute(insert(workers).values(row))

    def leave(self, token: str) -> None:
        """Remove the heartbeat of a worker that stops."""
        with self._connect() as connection:
            connection.execute(delete(workers).where(workers.c.token == token))

    def has_worker(self, besides: str = "") -> bool:
        """Whether any worker's heartbeat is fresh, not counting those of one host."""
        return self._count(workers.c.heartbeat > self._now() - FRESH, workers.c.host != besides) > 0

    def _let_go(self, job_id: str, condition: ColumnElement[bool], why: str, died: bool) -> bool:
        """Change a running job in one statement, so that a wish that comes in meanwhile is never lost."""
        deaths = jobs.c.deaths + (1 if died else 0)
        fails = and_(literal(died), deaths >= self.settings.attempts)
        state = case(
            (jobs.c.wish == "cancel", "cancelled"),
            (jobs.c.wish == "pause", "paused"),
            (fails, "failed"),
            else_="queued",
        )
        sentence = f"It was interrupted {self.settings.attempts} times without getting further. {why}"
        left: dict[str, Any] = {"wish": None, "worker": None, "lease_until": None, "pid": None, "deaths": deaths}
        ended = case((state.in_(ENDED), self._now()), else_=None)
        error = case((state == "failed", sentence), else_=None)
        return self._change(job_id, condition, state=state, ended=ended, error=error, **left)

    def _is_lost(self) -> ColumnElement[bool]:
        return and_(jobs.c.state == "running", or_(jobs.c.lease_until.is_(None), jobs.c.lease_until < self._now()))

    def _try_to_settle(self) -> None:
        """Settle for somebody who only reads: where nothing can be written, what can be read is still shown."""
        try:
            self.settle()
        except StorageError as error:
            log.warning("%s", error)


def _held_by(token: str) -> ColumnElement[bool]:
    return and_(jobs.c.worker == token, jobs.c.state == "running")


def _event(job_id: str, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"job": job_id, "time": time.time(), "kind": kind, "data": json.dumps(data)}
