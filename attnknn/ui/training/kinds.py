"""Kinds of job, in words, and what each is about. Pure."""

from __future__ import annotations

from attnknn.jobs import Job

WORDS = {"train": "training", "download": "download", "prepare": "preparation", "evaluate": "evaluation"}


def word(job: Job) -> str:
    """Return what a reader calls a kind of job."""
    return WORDS.get(job.kind, job.kind)


def subject(job: Job) -> str:
    """Return the name of the data or of the checkpoint that a job is about."""
    spec = job.spec
    found = spec.get("config", {}).get("dataset") or spec.get("dataset") or spec.get("checkpoint")
    return str(found or "?")


def checkpoint(job: Job) -> str | None:
    """Return the checkpoint that a job made, or worked on."""
    found = (job.result or {}).get("checkpoint") or job.spec.get("checkpoint")
    return None if found is None else str(found)
