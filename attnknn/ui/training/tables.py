"""The table that an evaluation made, to take away."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.jobs import Job
from attnknn.ui.display import literal, or_sentence
from attnknn.ui.training import kinds, table
from attnknn.work.results import read_table

Rows = Sequence[dict[str, Any]]


def write_csv(rows: Rows) -> str:
    r"""Write rows as CSV; every column that any row has is there.

    Example:
        >>> write_csv([{"k": 5, "accuracy": 0.9}, {"k": 9}])
        'k,accuracy\n5,0.9\n9,\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_json(rows: Rows) -> str:
    """Write rows as JSON."""
    return json.dumps(list(rows), indent=1)


WRITERS: dict[str, tuple[Callable[[Rows], str], str]] = {
    "csv": (write_csv, "text/csv"),
    "json": (write_json, "application/json"),
}


def offer_table(job: Job, place: DeltaGenerator) -> None:
    """Offer what an evaluation measured, or say why it cannot be had."""
    if job.kind != "evaluate" or job.state != "done":
        return
    rows = _rows_of(job.id)
    if isinstance(rows, str):
        place.caption(literal(rows))
        return
    for ending, (write, mime) in WRITERS.items():
        place.download_button(
            ending.upper(),
            partial(write, rows),
            f"{kinds.subject(job)}-{job.id[:8]}.{ending}",
            mime,
            key=f"{ending}_{job.id}",
            help=f"{len(rows):,} rows: every vote, k and noise.",
            icon=":material/download:",
            on_click="ignore",
        )


@st.cache_data(max_entries=8, ttl=600, show_spinner=False)
def _rows_of(job_id: str) -> Rows | str:
    """Read the table of a job that is done; it never changes any more."""
    return or_sentence(lambda: read_table(table.read(lambda store: store.get(job_id))))
