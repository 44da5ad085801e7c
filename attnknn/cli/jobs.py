"""`jobs` and `worker`: what runs in the background, and the process that runs it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnknn.cli.options import AsJson
from attnknn.cli.show import print_json, print_table

if TYPE_CHECKING:
    from attnknn.jobs import Job, JobStore

JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of a job, or its first letters.", show_default=False)]

LAST = 20  # how many of the things that a job said are shown
MOST = 10_000  # how many jobs are looked through for an id

jobs = typer.Typer(help="See and steer what runs in the background.", no_args_is_help=True)


@jobs.command("list")
def list_jobs(as_json: AsJson = False) -> None:
    """List jobs, the newest first."""
    store = open_store()
    rows = store.all()
    if any(job.state == "queued" for job in rows) and not store.has_worker():
        typer.echo("Jobs are waiting, and no worker is there. Start one: python -m attnknn worker", err=True)
    if as_json:
        print_json({"jobs": [describe(job) for job in rows]})
        return
    cells = [[job.id[:8], job.kind, job.title, job.status, f"{job.progress:.0%}", job.stage] for job in rows]
    print_table(f"{len(rows)} jobs", ["id", "kind", "title", "state", "done", "stage"], cells)


@jobs.command("show")
def show_job(job_id: JobId, as_json: AsJson = False) -> None:
    """Show one job: its state, its settings and what it said."""
    store = open_store()
    job = find(store, job_id)
    events = store.events(job.id)
    if as_json:
        said = [{"time": event.time, "kind": event.kind, "data": event.data} for event in events]
        print_json(describe(job) | {"events": said})
        return
    typer.echo(f"{job.id}  {job.title}\n{job.status}, {job.progress:.0%}  {job.stage}")
    if job.error:
        typer.echo(job.error)
    for event in events[-LAST:]:
        typer.echo(f"{time.strftime('%H:%M:%S', time.localtime(event.time))}  {_in_words(event.data)}")


@jobs.command("cancel")
def cancel_job(job_id: JobId, as_json: AsJson = False) -> None:
    """Stop a job for good; what it was making is dropped."""
    wish(job_id, "cancel", as_json)


@jobs.command("pause")
def pause_job(job_id: JobId, as_json: AsJson = False) -> None:
    """Let a job write its checkpoint and rest."""
    wish(job_id, "pause", as_json)


@jobs.command("resume")
def resume_job(job_id: JobId, as_json: AsJson = False) -> None:
    """Let a paused or failed job go on from its last checkpoint."""
    from attnknn.work.submit import hand_over

    store = open_store()
    say(hand_over(store, store.resume(find(store, job_id).id)), as_json)


def run_worker() -> None:
    """Take up jobs until there has been nothing to do for ten minutes; one worker per machine."""
    import logging
    import sys

    from attnknn.jobs import JobSettings
    from attnknn.jobs.worker import Worker

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if not Worker(JobSettings.from_environment(), [sys.executable, "-m", "attnknn.work"]).run():
        typer.echo("This machine has a worker already.", err=True)


def wish(beginning: str, what: Literal["cancel", "pause"], as_json: bool) -> None:
    """Ask a job to stop, and say what became of it.

    Raises:
        JobError: It has ended already.
    """
    from attnknn.errors import JobError

    store = open_store()
    job = find(store, beginning)
    if job.ended is not None:
        asked = {"cancel": "cancelled", "pause": "paused"}[what]
        expected = f"Only a job that has not ended can be {asked}."
        raise JobError(expected, f"This one is {job.state}.", "There is nothing to stop.")
    say(store.wish(job.id, what), as_json)


def open_store() -> JobStore:
    """Open the table of jobs, and say if a damaged one was moved aside."""
    from attnknn.jobs import JobSettings, JobStore

    store = JobStore(JobSettings.from_environment())
    if store.notice:
        typer.echo(store.notice, err=True)
    return store


def find(store: JobStore, beginning: str) -> Job:
    """Find the one job whose id begins so.

    Raises:
        UnknownJob: None does.
        JobError: More than one does.
    """
    from attnknn.errors import JobError, UnknownJob

    found = [job for job in store.all(limit=MOST) if job.id.startswith(beginning)]
    if not found:
        raise UnknownJob(beginning)
    if len(found) > 1:
        some = ", ".join(job.id[:8] for job in found[:5])
        expected = "The beginning of an id must fit one job."
        raise JobError(expected, f'"{beginning}" fits {len(found)}, among them {some}.', "Write more of it.")
    return found[0]


def describe(job: Job) -> dict[str, Any]:
    """Return a job in plain JSON types."""
    names = ("id", "kind", "title", "status", "progress", "stage", "attempt", "created", "started", "ended", "error")
    return {name: getattr(job, name) for name in names} | {"spec": job.spec, "result": job.result}


def say(job: Job, as_json: bool) -> None:
    """Print what became of a job."""
    if as_json:
        print_json(describe(job))
    else:
        typer.echo(f"{job.id[:8]}  {job.title}: {job.status}")


def _in_words(data: dict[str, Any]) -> str:
    if "line" in data:
        return str(data["line"])
    shown = {name: value for name, value in data.items() if not isinstance(value, list | dict)}
    return "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in shown.items()
    )
