"""What runs now. One fragment looks at the table again and again, often while something runs, else now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.errors import UnknownJob
from attnknn.jobs import Job
from attnknn.ui import state
from attnknn.ui.display import explained, notice, or_sentence
from attnknn.ui.training import story, table
from attnknn.ui.training.run import draw_body, draw_head, draw_progress, draw_row
from attnknn.work.submit import ensure_worker

WHEN_ASKED = 0.4  # seconds between two looks, while a run has not yet done what it was asked
WHEN_ACTIVE = 1.0
WHEN_PAUSED = 5.0
WHEN_QUIET = 12.0
SEEN_TO = 2.0  # seconds between two looks for a worker
HEAD_START = 0.15  # seconds in which a browser paints form and head, before Plotly keeps it from painting

# Where columns stand below each other, what runs comes before the long form, and stays there whatever is shown. A run
# has its room before its curves are drawn: what comes below it stays where it is.
STYLE = """<style>
[class*="st-key-run_"] > div:first-child { min-height: 2.6rem; }
.st-key-strip_place_image { min-height: 172px; }
.st-key-strip_place_table { min-height: 300px; }
.st-key-room_image [class*="st-key-run_"] { min-height: 560px; }
.st-key-room_table [class*="st-key-run_"] { min-height: 688px; }
.st-key-numbers_of_a_run > * { flex: 1 1 96px; min-width: 96px; }
@media (max-width: 640px) {
  [data-testid="stColumn"]:has(.st-key-view) { order: -1; }
  [class*="st-key-room_"] [class*="st-key-run_"] { min-height: 960px; }
}
[data-testid="stProgress"] [role="progressbar"] > div { background: color-mix(in srgb, currentColor 12%, transparent); }
</style>"""

Signature = tuple[tuple[str, str], ...]
Places = dict[str, tuple[DeltaGenerator, Callable[[Job], None]]]
"""Where the moving part of a job goes, by its id, and who draws it."""


def is_open() -> bool:
    """Whether the table of jobs can be read; if not, say why, and go on as soon as it can."""
    if not isinstance(or_sentence(table.all_jobs), str):
        return True
    st.fragment(_wait, run_every=WHEN_PAUSED if table.is_polling() else None)()
    return False


def watch(is_shown: bool) -> None:
    """Draw what runs, and keep watching it; the whole page is drawn again when a job changes its state.

    Names and buttons are the page's own, and only what moves belongs to the fragment: a server that was started
    again does not know the fragment until it has drawn the page once, and drops clicks on what is inside.

    Args:
        is_shown: Whether runs are drawn; if not, they are only watched, so that lists stay true.
    """
    st.html(STYLE)
    moved_aside = table.store().notice
    if moved_aside:
        notice(moved_aside)
    jobs = table.all_jobs()
    _check_link(jobs)
    places = _lay_out(jobs) if is_shown else {}
    if places:
        time.sleep(HEAD_START)
    st.fragment(_look, run_every=_pace(jobs))(places, _sign(jobs))


def _lay_out(jobs: list[Job]) -> Places:
    """Draw the head of each run that is shown, the one in focus first, and return where the rest goes."""
    focus = _in_focus(jobs)
    if focus is None:
        with st.container(border=True, key="nothing_runs"):
            st.markdown("**Nothing runs.**")
            st.caption(
                "Choose data and press Start: the curves grow here, and you see who becomes a neighbor of whom. "
                "A run goes on when you close this page, and everybody who opens it sees the same."
            )
        return {}
    if focus.is_active:
        st.query_params["job"] = focus.id
    with st.container(key=_room(focus)):
        places: Places = {focus.id: (draw_head(focus), draw_body)}
    others = [job for job in reversed(jobs) if job.id != focus.id and (job.is_active or job.state == "paused")]
    return places | {job.id: (draw_row(job), draw_progress) for job in others}


def _room(job: Job) -> str | None:
    """Name the room of a run in STYLE: only trainings draw curves, and looks at rows are taller than images."""
    config = story.config_of(job)
    if config is None:
        return None
    return "room_table" if config.embedder.kind == "mlp" else "room_image"


def _look(places: Places, before: Signature) -> None:
    with explained():
        jobs = table.all_jobs()
        if _sign(jobs) != before:
            st.rerun()
        if any(job.is_active for job in jobs):
            _see_to_a_worker(table.store().settings.database)
        for job in jobs:
            if job.id in places:
                place, draw = places[job.id]
                with place:
                    draw(job)


def _wait() -> None:
    with explained():
        table.all_jobs()
        st.rerun()


def _in_focus(jobs: list[Job]) -> Job | None:
    """Return the job that the link names, or else the one that runs, waits or rests."""
    asked = st.query_params.get("job")
    named = [job for job in jobs if job.id == asked]
    by_state = [job for wanted in ("running", "queued", "paused") for job in reversed(jobs) if job.state == wanted]
    return next(iter(named + by_state), None)


def _check_link(jobs: list[Job]) -> None:
    asked = st.query_params.get("job")
    if asked is not None and asked not in {job.id for job in jobs}:
        notice(str(UnknownJob(state.shorten(asked))))


def _pace(jobs: list[Job]) -> float | None:
    """Say how many seconds to wait between two looks: others may start something while nothing runs."""
    if not table.is_polling():
        return None
    if any(job.is_active and job.wish for job in jobs):
        return WHEN_ASKED
    if any(job.is_active for job in jobs):
        return WHEN_ACTIVE
    return WHEN_PAUSED if any(job.state == "paused" for job in jobs) else WHEN_QUIET


def _sign(jobs: list[Job]) -> Signature:
    return tuple((job.id, job.status) for job in jobs)


@st.cache_data(ttl=SEEN_TO, max_entries=4, show_spinner=False)
def _see_to_a_worker(database: str) -> None:
    """Start a worker where a job waits for one: the last may have been killed."""
    ensure_worker(table.store())
