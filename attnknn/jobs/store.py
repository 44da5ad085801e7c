"""The visitor's side of the table, behind verbs: submit, look, wish, resume.

Every change of state is one conditional UPDATE, so two processes can never both win it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Select, and_, case, insert, literal, null, or_, select
from sqlalchemy.exc import IntegrityError

from attnknn.errors import JobError, UnknownJob
from attnknn.jobs.claims import Claims
from attnknn.jobs.job import Event, Job
from attnknn.jobs.lanes import LANES
from attnknn.jobs.settings import JobSettings
from attnknn.jobs.table import ACTIVE, ENDED, events, jobs

Wish = Literal["cancel", "pause"]
LIMIT_PER_OWNER = 8
NOTE = "job.json"  # in a draft: what the row of its job said
REMEDIES = {
    "queued": "It waits already; it starts by itself.",
    "running": "It runs already.",
    "done": "Start a new one.",
    "cancelled": "Start a new one.",
}


class JobStore(Claims):
    """The jobs of one database.

    Attributes:
        notice: A sentence for the visitor, if a damaged database was moved aside.
    """

    def __init__(self, settings: JobSettings) -> None:
        super().__init__(settings)
        if self.was_moved:
            self._recover()

    def submit(
        self, kind: str, title: str, spec: Mapping[str, Any], owner: str = "terminal", lane: str = "long"
    ) -> Job:
        """Queue a job; the same kind and spec as one that is still active is that one.

        Raises:
            JobError: The owner has too many jobs waiting already.
            StorageError: The table cannot be written.
            ValueError: There is no such lane.
        """
        if lane not in LANES:
            raise ValueError(f"lane must be one of {tuple(LANES)}, however: lane={lane!r}")
        text = json.dumps(spec, sort_keys=True)
        digest = hashlib.sha256(f"{kind}:{text}".encode()).hexdigest()
        existing = self._active_with(digest)
        if existing:
            return existing
        self._check_limit(owner)
        row = {"id": uuid.uuid4().hex, "kind": kind, "title": title, "owner": owner, "lane": lane}
        row |= {"spec": text, "spec_hash": digest}
        try:
            return self._insert(row)
        except IntegrityError:  # somebody submitted the same in this moment
            existing = self._active_with(digest)
            if existing:
                return existing
            raise

    def get(self, job_id: str) -> Job:
        """Return one job, as it truly is: one whose worker is gone does not run.

        Raises:
            UnknownJob: There is none of that id.
            StorageError: The table cannot be read.
        """
        found = self._read(select(jobs).where(jobs.c.id == job_id))
        if not found:
            raise UnknownJob(job_id)
        return found[0]

    def all(self, states: tuple[str, ...] = ACTIVE + ENDED, limit: int = 200, lane: str | None = None) -> list[Job]:
        """List jobs, the newest first; those of one lane, or of all."""
        query = select(jobs).where(jobs.c.lane == lane) if lane else select(jobs)
        query = query.order_by(jobs.c.created.desc()).limit(limit)
        found = self._read(query.where(jobs.c.state.in_({*states, "running"})))  # some only seem to run
        return [job for job in found if job.state in states]

    def place_in_queue(self, job: Job) -> int:
        """Say how many queued jobs of its lane come before this one."""
        return self._count(jobs.c.state == "queued", jobs.c.lane == job.lane, jobs.c.created < job.created)

    def wish(self, job_id: str, wish: Wish) -> Job:
        """Ask a job to cancel or pause; one that does not run yet, or rests, does so at once.

        A job that has ended stays as it is, and a cancel that was asked for is not softened to a pause.
        """
        state, resting = {"cancel": ("cancelled", ("queued", "paused")), "pause": ("paused", ("queued",))}[wish]
        rests = jobs.c.state.in_(resting)
        runs = and_(jobs.c.state == "running", or_(jobs.c.wish.is_(None), jobs.c.wish != "cancel"))
        self._change(
            job_id,
            or_(rests, runs),
            state=case((rests, state), else_=jobs.c.state),
            wish=case((rests, null()), else_=literal(wish)),
            ended=case((and_(rests, literal(wish == "cancel")), self._now()), else_=jobs.c.ended),
        )
        return self.get(job_id)

    def resume(self, job_id: str) -> Job:
        """Queue a paused or failed job again; it goes on from its last checkpoint.

        One that was asked to pause, and has not yet, just goes on.

        Raises:
            JobError: It is neither, or the same work is active under another id.
        """
        before = self.get(job_id)
        fresh: dict[str, Any] = {"wish": None, "error": None, "ended": None, "deaths": 0, "furthest": 0.0}
        try:
            if self._change(job_id, jobs.c.state.in_(("paused", "failed")), state="queued", **fresh):
                return self.get(job_id)
        except IntegrityError as error:
            expected, received = "The same work is done once at a time.", "It was started again under another id."
            raise JobError(expected, received, "Follow that job instead.") from error
        if self._change(job_id, and_(jobs.c.state == "running", jobs.c.wish == "pause"), wish=None):
            return self.get(job_id)
        job = self.get(job_id)
        remedy = REMEDIES.get(job.state, f"It was {before.state} a moment ago: try again.")
        raise JobError("Only a paused or failed job can be resumed.", f"This one is {job.status}.", remedy)

    def events(self, job_id: str, after: int = 0, kind: str | None = None) -> list[Event]:
        """List what a job said, oldest first."""
        query = select(events).where(events.c.job == job_id, events.c.id > after).order_by(events.c.id)
        return [Event.from_row(row) for row in self._rows(query.where(events.c.kind == kind) if kind else query)]

    def note(self, job: Job) -> None:
        """Write beside a job's draft what its row says, so that a damaged database loses no run."""
        said = {name: getattr(job, name) for name in ("kind", "title", "spec", "owner", "lane", "created")}
        place = self.settings.draft(job.id) / NOTE
        draft = place.with_suffix(".draft")
        draft.write_text(json.dumps(said), encoding="utf-8")
        draft.replace(place)

    def _recover(self) -> None:
        """List again, as paused, the jobs that left a draft behind; their rows were in a damaged database."""
        for place in sorted(self.settings.draft("*").parent.glob(f"*/{NOTE}")):
            row = _row_of(place)
            if row:
                try:
                    self._insert(row, state="paused")
                except IntegrityError:
                    continue  # it is there, or another that does the same

    def _read(self, query: Select[Any]) -> list[Job]:
        query = query.add_columns(self._is_lost().label("is_lost"))
        rows = self._rows(query)
        if any(row["is_lost"] for row in rows):
            self._try_to_settle()
            rows = self._rows(query)
        return [Job.from_row(row) for row in rows]

    def _insert(self, row: Mapping[str, Any], state: str = "queued") -> Job:
        short = {"title": str(row["title"])[:200], "owner": str(row["owner"])[:64]}
        values = {"created": self._now(), "progress": 0.0, "stage": "", "attempt": 0, **row, **short, "state": state}
        with self._connect() as connection:
            connection.execute(insert(jobs).values(values))
        return self.get(row["id"])

    def _check_limit(self, owner: str) -> None:
        waiting = self._count(jobs.c.owner == owner[:64], jobs.c.state == "queued")
        if waiting >= LIMIT_PER_OWNER:
            raise JobError(
                f"At most {LIMIT_PER_OWNER} jobs of one visitor wait at a time.",
                f"{waiting} of yours are waiting.",
                "Let one finish, or cancel one.",
            )

    def _active_with(self, digest: str) -> Job | None:
        found = self._read(select(jobs).where(jobs.c.spec_hash == digest, jobs.c.state.in_(ACTIVE)))
        return next((job for job in found if job.state in ACTIVE), None)


def _row_of(place: Path) -> dict[str, Any] | None:
    """Read what a draft says of its job; None where it says nothing that can be understood."""
    try:
        said = json.loads(place.read_text(encoding="utf-8"))
        text = json.dumps(said["spec"], sort_keys=True)
        row = {name: str(said[name]) for name in ("kind", "title", "owner")} | {"created": float(said["created"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    row["lane"] = said["lane"] if said.get("lane") in LANES else "long"
    digest = hashlib.sha256(f"{row['kind']}:{text}".encode()).hexdigest()
    return {**row, "id": place.parent.name[:32], "spec": text, "spec_hash": digest}
