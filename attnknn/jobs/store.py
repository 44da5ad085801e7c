"""The table of jobs, behind verbs: submit, claim, report, wish, finish.

Every change of state is one conditional UPDATE, so two processes can never both win it.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import RowMapping, and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from attnknn.errors import JobError, UnknownJob
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.table import ACTIVE, ENDED, events, jobs, open_engine, workers

Wish = Literal["cancel", "pause"]
FRESH = 5.0  # seconds since the last heartbeat of a worker that counts as alive
LIMIT_PER_OWNER = 8


@dataclass(frozen=True)
class Job:
    """One row of the table.

    Attributes:
        state: queued, running, paused, done, failed or cancelled.
        wish: What somebody asked a running job to do: cancel, pause, or nothing.
        progress: Share done, between 0 and 1.
        stage: What it is doing, in words.
        attempt: How often it was taken up.
        error: A sentence, if it failed.
        result: What it made, if it is done.
        created, started, ended: Seconds since 1970.
    """

    id: str
    kind: str
    title: str
    spec: dict[str, Any]
    owner: str
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
    """One thing that a job said while it ran."""

    id: int
    time: float
    kind: str
    data: dict[str, Any]


class JobStore:
    """The jobs of one database.

    Attributes:
        notice: A sentence for the visitor, if a damaged database was moved aside.
    """

    def __init__(self, settings: JobSettings) -> None:
        self.settings = settings
        self.engine, self.notice = open_engine(settings.database)

    def submit(self, kind: str, title: str, spec: Mapping[str, Any], owner: str = "terminal") -> Job:
        """Queue a job; the same kind and spec as one that is still active is that one.

        Raises:
            JobError: The owner has too many jobs waiting already.
        """
        text = json.dumps(spec, sort_keys=True)
        digest = hashlib.sha256(f"{kind}:{text}".encode()).hexdigest()
        existing = self._active_with(digest)
        if existing:
            return existing
        waiting = sum(job.state == "queued" for job in self.all() if job.owner == owner)
        if waiting >= LIMIT_PER_OWNER:
            raise JobError(
                f"At most {LIMIT_PER_OWNER} jobs of one visitor wait at a time.",
                f"{waiting} of yours are waiting.",
                "Let one finish, or cancel one.",
            )
        row: dict[str, Any] = {
            "id": uuid.uuid4().hex,
            "kind": kind,
            "title": title,
            "spec": text,
            "spec_hash": digest,
            "owner": owner,
            "state": "queued",
            "created": time.time(),
        }
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(jobs).values(row))
        except IntegrityError:  # somebody submitted the same in this moment
            existing = self._active_with(digest)
            if existing:
                return existing
            raise
        return self.get(row["id"])

    def get(self, job_id: str) -> Job:
        """Return one job.

        Raises:
            UnknownJob: There is none of that id.
        """
        with self.engine.connect() as connection:
            row = connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().first()
        if row is None:
            raise UnknownJob(job_id)
        return _job(row)

    def all(self, states: tuple[str, ...] = ACTIVE + ENDED, limit: int = 200) -> list[Job]:
        """List jobs, the newest first."""
        query = select(jobs).where(jobs.c.state.in_(states)).order_by(jobs.c.created.desc()).limit(limit)
        with self.engine.connect() as connection:
            return [_job(row) for row in connection.execute(query).mappings()]

    def place_in_queue(self, job: Job) -> int:
        """Say how many queued jobs come before this one."""
        query = select(func.count()).where(jobs.c.state == "queued", jobs.c.created < job.created)
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def wish(self, job_id: str, wish: Wish) -> Job:
        """Ask a job to cancel or pause; one that does not run yet, or rests, does so at once."""
        at_once = {"cancel": ("cancelled", ("queued", "paused")), "pause": ("paused", ("queued",))}
        state, resting = at_once[wish]
        ended = time.time() if state == "cancelled" else None
        if not self._change(job_id, jobs.c.state.in_(resting), state=state, ended=ended, wish=None):
            self._change(job_id, jobs.c.state == "running", wish=wish)
        return self.get(job_id)

    def resume(self, job_id: str) -> Job:
        """Queue a paused or failed job again; it goes on from its last checkpoint.

        Raises:
            JobError: It is neither, or the same work is active under another id.
        """
        job = self.get(job_id)
        fresh = {"state": "queued", "wish": None, "attempt": 0, "error": None, "ended": None}
        try:
            changed = self._change(job_id, jobs.c.state.in_(("paused", "failed")), **fresh)
        except IntegrityError:
            changed = False
        if not changed:
            raise JobError("Only a paused or failed job can be resumed.", f"This one is {job.state}.", "Start it anew.")
        return self.get(job_id)

    def claim(self, job_id: str, token: str) -> bool:
        """Take a queued job, or one whose worker's lease has run out; at most one worker gets it."""
        free = or_(jobs.c.state == "queued", and_(jobs.c.state == "running", jobs.c.lease_until < time.time()))
        return self._change(
            job_id,
            free,
            state="running",
            worker=token,
            lease_until=time.time() + self.settings.lease,
            attempt=jobs.c.attempt + 1,
            started=func.coalesce(jobs.c.started, time.time()),
            pid=None,
        )

    def renew(self, job_id: str, token: str) -> bool:
        """Renew a lease; False if the job is no longer this worker's."""
        return self._change(job_id, jobs.c.worker == token, lease_until=time.time() + self.settings.lease)

    def report(self, job_id: str, token: str, **values: Any) -> bool:
        """Write progress, stage or pid of a job that is this worker's."""
        return self._change(job_id, and_(jobs.c.worker == token, jobs.c.state == "running"), **values)

    def end(self, job_id: str, token: str, state: str, **values: Any) -> bool:
        """Bring a running job of this worker to `done`, `failed`, `cancelled`, `paused` or back to `queued`."""
        ended = time.time() if state in ENDED else None
        if "result" in values:
            values["result"] = json.dumps(values["result"])
        mine = and_(jobs.c.worker == token, jobs.c.state == "running")
        return self._change(
            job_id, mine, state=state, wish=None, worker=None, lease_until=None, pid=None, ended=ended, **values
        )

    def waiting(self) -> list[str]:
        """List ids that somebody should take up: queued, or running under a lease that has run out."""
        lost = and_(jobs.c.state == "running", jobs.c.lease_until < time.time())
        query = select(jobs.c.id).where(or_(jobs.c.state == "queued", lost)).order_by(jobs.c.created)
        with self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def say(self, job_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event."""
        with self.engine.begin() as connection:
            row = {"job": job_id, "time": time.time(), "kind": kind, "data": json.dumps(data)}
            connection.execute(insert(events).values(row))

    def events(self, job_id: str, after: int = 0, kind: str | None = None) -> list[Event]:
        """List what a job said, oldest first."""
        query = select(events).where(events.c.job == job_id, events.c.id > after).order_by(events.c.id)
        if kind:
            query = query.where(events.c.kind == kind)
        with self.engine.connect() as connection:
            rows = connection.execute(query).mappings()
            return [Event(row["id"], row["time"], row["kind"], json.loads(row["data"])) for row in rows]

    def beat(self, token: str, host: str, pid: int) -> None:
        """Write the heartbeat of a worker."""
        with self.engine.begin() as connection:
            found = connection.execute(update(workers).where(workers.c.token == token).values(heartbeat=time.time()))
            if found.rowcount == 0:
                row = {"token": token, "host": host, "pid": pid, "started": time.time(), "heartbeat": time.time()}
                connection.execute(insert(workers).values(row))

    def leave(self, token: str) -> None:
        """Remove the heartbeat of a worker that stops."""
        with self.engine.begin() as connection:
            connection.execute(delete(workers).where(workers.c.token == token))

    def has_worker(self) -> bool:
        """Whether any worker's heartbeat is fresh."""
        query = select(func.count()).where(workers.c.heartbeat > time.time() - FRESH)
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one()) > 0

    def _active_with(self, digest: str) -> Job | None:
        query = select(jobs).where(jobs.c.spec_hash == digest, jobs.c.state.in_(ACTIVE))
        with self.engine.connect() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _job(row)

    def _change(self, job_id: str, condition: Any, **values: Any) -> bool:
        with self.engine.begin() as connection:
            changed = connection.execute(update(jobs).where(jobs.c.id == job_id, condition).values(**values))
        return bool(changed.rowcount == 1)


def _job(row: RowMapping) -> Job:
    values = {name: row[name] for name in Job.__dataclass_fields__}
    values["spec"] = json.loads(row["spec"])
    values["result"] = json.loads(row["result"]) if row["result"] else None
    return Job(**values)
