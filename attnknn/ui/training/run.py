"""One job in full: its state, its progress, its curves, one query's neighbors, and what can be done about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.config import TrainingConfig
from attnknn.jobs import Event, Job, JobStore
from attnknn.jobs.table import ENDED
from attnknn.ui.display import explained, literal
from attnknn.ui.labels import write_labels, write_noise, write_round
from attnknn.ui.strip import draw_strip
from attnknn.ui.training import kinds, story, table
from attnknn.ui.training.cards import offer_opening
from attnknn.ui.training.starting import start
from attnknn.ui.training.tables import offer_table
from attnknn.work.submit import hand_over

BADGES: dict[str, tuple[str, Any]] = {
    "queued": (":material/hourglass_empty:", "gray"),
    "running": (":material/play_arrow:", "blue"),
    "pausing": (":material/pause:", "orange"),
    "paused": (":material/pause:", "orange"),
    "cancelling": (":material/stop:", "orange"),
    "cancelled": (":material/stop:", "gray"),
    "done": (":material/check:", "green"),
    "failed": (":material/error:", "red"),
}
CHART = {"displayModeBar": False, "responsive": True}


def draw_run(job: Job) -> None:
    """Draw everything about one run."""
    with draw_head(job):
        draw_body(job)


def draw_head(job: Job) -> DeltaGenerator:
    """Draw the name of a job, its state and what can be done about it; return where the rest of it goes."""
    card = st.container(border=True, key=f"run_{job.id}")
    head = card.container(horizontal=True, vertical_alignment="center", gap="small")
    _name(job, head)
    offer_verbs(job, head)
    made = kinds.checkpoint(job)
    if job.state == "done" and made:
        offer_opening(made, head)
    offer_table(job, head)
    return card


def draw_body(job: Job) -> None:
    """Draw what moves while a job runs. Its parts have their places from the beginning, so that nothing jumps."""
    events = table.events_of(job)
    st.progress(job.progress, text=progress_line(job, events))
    if job.error:
        st.error(literal(job.error), icon=":material/error:")
    if job.kind == "train":
        _draw_curves(job, events)
        _tell_cleanings(job, events)
        _draw_neighbors(job, events)
    st.caption(settings_line(job))


def draw_row(job: Job) -> DeltaGenerator:
    """Draw the head of a job that is not in focus; return where its progress goes."""
    card = st.container(border=True, key=f"row_{job.id}")
    head = card.container(horizontal=True, vertical_alignment="center", gap="small")
    _name(job, head)
    if head.button("Watch", key=f"watch_{job.id}", icon=":material/visibility:", type="tertiary"):
        st.query_params["job"] = job.id
        st.rerun()
    offer_verbs(job, head)
    return card


def draw_progress(job: Job) -> None:
    """Draw how far a job is that is not in focus."""
    st.progress(job.progress, text=progress_line(job, []))


def offer_verbs(job: Job, place: DeltaGenerator) -> None:
    """Offer what can be done about a job in its state; it is in the table before the page is drawn again."""
    if job.state in ("queued", "running"):
        _verb(place, job, "pause", ":material/pause:", lambda store: store.wish(job.id, "pause"), bool(job.wish))
    if job.state in ("paused", "failed"):
        _verb(place, job, "resume", ":material/play_arrow:", lambda store: hand_over(store, store.resume(job.id)))
    if job.state in ("queued", "running", "paused"):
        is_asked = job.wish == "cancel"
        _verb(place, job, "cancel", ":material/close:", lambda store: store.wish(job.id, "cancel"), is_asked)
    if job.kind == "train" and job.state in ENDED:
        _offer_start_again(job, place)


def progress_line(job: Job, events: list[Event]) -> str:
    """Say in a line how far a job is, and how long it will go on.

    Example:
        >>> from types import SimpleNamespace
        >>> row = dict(status="done", state="done", started=0.0, ended=75.0)
        >>> progress_line(SimpleNamespace(**row), [])
        'done in 1 min 15 s'
    """
    if job.state == "done":
        return f"done in {story.write_duration((job.ended or 0) - (job.started or 0))}"
    if job.state == "queued":
        before = table.place_in_queue(job)
        return "starting" if before == 0 else f"waiting; {before} {'job goes' if before == 1 else 'jobs go'} first"
    if job.state != "running":
        return f"{job.status} at {job.progress:.0%}"
    if job.wish:
        return f"{job.status} after this step"
    left = story.time_left(job, events)
    return " · ".join([*_where(job, events), *([story.write_left(left)] if left is not None else [])])


def _where(job: Job, events: list[Event]) -> list[str]:
    """Say where a run is: in which epoch and round while it counts epochs, else in which stage."""
    done, config = len(story.curve_table(events)["epoch"]), story.config_of(job)
    if not done or job.stage != story.TRAINING or config is None:
        return [literal(job.stage or "Starting")]
    words, rounds = [f"Epoch {done} of {config.n_epochs}"], config.n_trainings
    return [*words, f"round {math.ceil(done / config.embedder.epochs)} of {rounds}"] if rounds > 1 else words


def settings_line(job: Job) -> str:
    """Say what a job was asked to do."""
    config = story.config_of(job)
    words = _settings_of(config) if job.kind == "train" and config else []
    words += [f"attempt {job.attempt}"] if job.attempt > 1 else []
    return literal(" · ".join([*words, f"job {job.id[:8]}"]))


def _settings_of(config: TrainingConfig) -> list[str]:
    embedder, attention, rounds = config.embedder, config.attention, config.n_trainings
    words = [f"{rounds} × {embedder.epochs} epochs" if rounds > 1 else f"{embedder.epochs} epochs"]
    words += [f"seed {config.seed}", f"k {attention.k}", "heads " + ", ".join(attention.heads)]
    words += [f"held out {config.held_out:.0%}", f"width {embedder.width}", f"batch size {embedder.batch_size}"]
    return [*words, *filter(None, [write_labels(config)])]


def _name(job: Job, place: DeltaGenerator) -> None:
    icon, color = BADGES.get(job.status, (":material/help:", "gray"))
    place.markdown(f"**{literal(job.title)}**", width="content")
    if job.kind != "train":
        place.caption(literal(kinds.word(job)), width="content")
    place.badge(job.status, icon=icon, color=color)
    place.space("stretch")


def _verb(
    place: DeltaGenerator, job: Job, verb: str, icon: str, act: Callable[[JobStore], Any], is_asked: bool = False
) -> None:
    if place.button(verb.capitalize(), key=f"{verb}_{job.id}", icon=icon, disabled=is_asked):
        with explained(then_stop=False):
            table.read(act)
            table.changed()
            st.rerun()


def _offer_start_again(job: Job, place: DeltaGenerator) -> None:
    hint = "The same settings, from the beginning, under a new name."
    if place.button("Start again", key=f"again_{job.id}", icon=":material/replay:", help=hint):
        with explained(then_stop=False):
            start(TrainingConfig.from_dict(job.spec["config"]))


def _draw_curves(job: Job, events: list[Event]) -> None:
    from attnknn.plots import curves

    numbers, config = story.curve_table(events), story.config_of(job)
    n_epochs, n_rounds = (config.n_epochs, config.n_trainings) if config else (0, 1)
    held_out = curves.HELD_OUT_NOISY if config and write_noise(config) else curves.HELD_OUT
    places = st.columns(2)
    for place, curve in zip(places, (curves.LOSS, held_out), strict=True):
        figure = curves.training_curve(numbers, curve, n_epochs, n_rounds)
        with place.container(key=f"{curve.column}_{job.id}", height=curves.HEIGHT + 8, border=False):
            alt = curves.describe(numbers, curve, n_epochs, n_rounds) if not job.is_active else curve.title
            st.plotly_chart(figure, key=f"curve_{curve.column}_{job.id}", config=CHART, alt=alt)


def _tell_cleanings(job: Job, events: list[Event]) -> None:
    """Say what each round of cleaning did; one that is still to come has its line already."""
    done, config = story.cleanings(events), story.config_of(job)
    lines = []
    for number in range(1, config.n_trainings if config else 1):
        if number in done:
            lines.append(literal(write_round(done[number])))
        elif job.state not in ENDED:
            lines.append(f"Cleaning after round {number}: to come.")
    if lines:
        st.caption("  \n".join(lines))


def _draw_neighbors(job: Job, events: list[Event]) -> None:
    kind = "table" if job.spec.get("config", {}).get("embedder", {}).get("kind") == "mlp" else "image"
    with st.container(key=f"strip_place_{kind}"):
        looks = story.strip(events)
        if looks is not None:
            draw_strip(looks, key=f"strip_{job.id}")
        elif job.is_active:
            st.caption("After the first epoch: one query, and who its nearest entries are.")
