"""Every job there was: a table with filters, and for the row that is picked what it said."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import streamlit as st

from attnknn.jobs import Job
from attnknn.ui.training import kinds, story, table
from attnknn.ui.training.run import BADGES, draw_run

MARKS = {"done": "✓", "failed": "✗", "cancelled": "■", "paused": "‖", "running": "▶", "queued": "…"}
ANY_KIND, ANYTHING = "any kind", "anything"


def show() -> None:
    """Show past and present jobs, the newest first, and the one that is picked in full."""
    jobs = table.all_jobs()
    if not jobs:
        st.info("No run was started yet. Choose data, and press Start.", icon=":material/info:")
        return
    chosen = _filter(jobs)
    if not chosen:
        st.info("Nothing fits these filters. Take one of them away.", icon=":material/filter_alt:")
        return
    job = _pick(chosen)
    if job is None:
        st.caption("Pick a row to see its curves, what it said, and why it failed if it did.")
        return
    draw_run(job)
    with st.expander("Log", icon=":material/description:", key="log"):
        st.code(story.log_lines(job, table.events_of(job)), language=None, height=280)


def _filter(jobs: list[Job]) -> list[Job]:
    """Let the visitor keep only some states, one kind, and what is about one dataset or checkpoint."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    there = [status for status in BADGES if any(job.status == status for job in jobs)]
    states = row.pills("State", there, selection_mode="multi", key="states", help="None chosen: all of them.")
    kind = row.selectbox("Kind", [ANY_KIND, *sorted({kinds.word(job) for job in jobs})], key="of_kind", width=160)
    about = row.selectbox("About", [ANYTHING, *sorted({kinds.subject(job) for job in jobs})], key="about", width=200)
    return [
        job
        for job in jobs
        if (not states or job.status in states)
        and kind in (ANY_KIND, kinds.word(job))
        and about in (ANYTHING, kinds.subject(job))
    ]


def _pick(jobs: list[Job]) -> Job | None:
    import pandas as pd

    rows = sha256("".join(job.id for job in jobs).encode()).hexdigest()[:12]  # other rows are another table
    event: Any = st.dataframe(
        pd.DataFrame([_row(job) for job in jobs]),
        key=f"job_list_{rows}",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={"progress": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)},
        placeholder="",
        alt="Jobs, the newest first.",
    )
    return next((jobs[row] for row in event["selection"]["rows"] if row < len(jobs)), None)


def _row(job: Job) -> dict[str, Any]:
    took = story.write_duration(job.ended - job.started) if job.started and job.ended else ""
    return {
        "asked for": time.strftime("%Y-%m-%d %H:%M", time.localtime(job.created)),
        "kind": kinds.word(job),
        "job": job.title,
        "state": f"{MARKS.get(job.state, '')} {job.status}",
        "progress": job.progress,
        "took": took,
        "epochs": story.n_epochs(job) or None,
        "seed": job.spec.get("config", {}).get("seed"),
        "why": job.error or "",
        "id": job.id[:8],
    }
