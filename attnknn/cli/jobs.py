"""`jobs` and `worker`: what runs in the background, and the process that runs it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnknn.cli.options import AsJson
from attnknn.cli.show import print_json, print_table

if TYPE_CHECKING:
    from attnknn.jobs import Job, JobStore

JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of a job, or its first letters.", show_default=False)]

jobs = typer.Typer(help="See and steer what runs in the background.", no_args_is_help=True)


@jobs.command("list")
def list_jobs(as_json: AsJson = False) -> None:
    """List jobs, the newest first."""
    rows = open_store().all()
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
    for event in events[-20:]:
        numbers = "  ".join(f"{name} {value}" for name, value in event.data.items() if not isinstance(value, list))
        typer.echo(f"{time.strftime('%H:%M:%S', time.localtime(event.time))}  {numbers}")


@jobs.command("cancel")
def cancel_job(job_id: JobId) -> None:
    """Stop a job for good; what it was making is dropped."""
    store = open_store()
    say(store.wish(find(store, job_id).id, "cancel"))


@jobs.command("pause")
def pause_job(job_id: JobId) -> None:
    """Let a job write its checkpoint and rest."""
    store = open_store()
    say(store.wish(find(store, job_id).id, "pause"))


@jobs.command("resume")
def resume_job(job_id: JobId) -> None:
    """Let a paused or failed job go on from its last checkpoint."""
    from attnknn.work.submit import hand_over

    store = open_store()
    say(hand_over(store, store.resume(find(store, job_id).id)))


def run_worker() -> None:
    """Take up jobs until there has been nothing to do for ten minutes; one worker per machine."""
    import sys

    from attnknn.jobs import JobSettings
    from attnknn.jobs.worker import Worker

    if not Worker(JobSettings.from_environment(), [sys.executable, "-m", "attnknn.work"]).run():
        typer.echo("This machine has a worker already.", err=True)


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
        UnknownJob: None does, or more than one.
    """
    from attnknn.errors import UnknownJob

    found = [job for job in store.all() if job.id.startswith(beginning)]
    if len(found) != 1:
        raise UnknownJob(beginning)
    return found[0]


def describe(job: Job) -> dict[str, Any]:
    """Return a job in plain JSON types."""
    names = ("id", "kind", "title", "status", "progress", "stage", "attempt", "created", "started", "ended", "error")
    return {name: getattr(job, name) for name in names} | {"spec": job.spec, "result": job.result}


def say(job: Job) -> None:
    """Print what became of a job."""
    typer.echo(f"{job.id[:8]}  {job.title}: {job.status}")
