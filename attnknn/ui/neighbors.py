"""The parts of the Neighbors page, in the order in which they are drawn."""

from __future__ import annotations

import json
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.bundle import POOL, Queries
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.classifier import AttnKNN
from attnknn.errors import UnknownCheckpoint
from attnknn.prediction import Prediction
from attnknn.ui import links, picking, preparing, state, store, upload
from attnknn.ui.board import draw_board, said_by
from attnknn.ui.display import explained, notice
from attnknn.ui.labels import write_labels
from attnknn.ui.present import present

BOARD = "board"


def picking_row() -> DeltaGenerator:
    """Lay out the row in which a visitor picks whom to ask; it wraps on narrow screens."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="small")


def choose_checkpoint(place: DeltaGenerator) -> AttnKNN:
    """Let the visitor choose a checkpoint, and load it.

    Raises:
        UnknownCheckpoint: There is none at all.
        CheckpointError: The chosen one cannot be trusted.
    """
    names = store.names()
    if not names:
        raise UnknownCheckpoint("digits", names)
    asked = links.read().get("checkpoint", names[0])
    if asked not in names and not links.is_ours():
        notice(f"{UnknownCheckpoint(state.shorten(asked), names)} Showing {names[0]}.")
    st.session_state["checkpoint"] = asked if asked in names else names[0]
    name = place.selectbox("Checkpoint", names, key="checkpoint", width=170, on_change=_change_checkpoint)
    preparing.see_to(name)
    trained = store.classifier(name)
    _tell_labels(trained)
    return trained


@st.fragment
def look(trained: AttnKNN) -> None:
    """Draw one query, and what can be taken away of it.

    A fragment: what is set on the board draws this again, and nothing around it.
    """
    with explained():
        query = picking.asked(trained)
        found = _ask(trained, query)
        setting = _read_setting(trained, found)
        upload.tell_inverted(query)
        _draw(trained, found, setting)
        _take_away(trained, found, setting)


def _read_setting(trained: AttnKNN, found: Queries) -> state.Setting:
    """Read from the address how the votes are cast, and say what of it does not fit."""
    setting, complaints = state.read(links.read(), _limits(trained, found))
    if not links.is_ours():
        for complaint in complaints:
            notice(complaint)
    return setting


def _ask(trained: AttnKNN, query: str) -> Queries:
    """Find the query's neighbors: all that the board may show."""
    own, k = upload.find(query, trained), _largest_k(trained)
    return trained.ask_embedded(own.key[None], own.logits[None], k, [query]) if own else trained.ask([query], k)


def _draw(trained: AttnKNN, found: Queries, setting: state.Setting) -> None:
    """Draw the board."""
    own, known = upload.find(str(found.ids[0]), trained), store.known(trained)
    walk, (heard, _) = store.noise_walk(trained, known.digest, setting.noise.seed), said_by(BOARD)
    picker = picking.offer(trained, str(found.ids[0]))
    board = present(trained, found, walk, setting, known, picker, own.values if own else None, heard)
    draw_board(board, BOARD, partial(_hear, trained, found))


def _hear(trained: AttnKNN, found: Queries) -> None:
    """Write what somebody set on the board into the address."""
    _, said = said_by(BOARD)
    limits = _limits(trained, found)
    setting, _ = state.read({name: text for name, text in said.items() if text}, limits)
    link: dict[str, str | None] = dict.fromkeys(one.name for one in state.parameters(limits))
    query = picking.follow(trained, setting, str(found.ids[0]), said)
    links.write(link | state.write(setting, limits) | ({"query": query} if query else {}))


def _limits(trained: AttnKNN, found: Queries) -> state.Limits:
    bank = trained.entries
    shown = {str(bank.ids[row]) for row in found.pool.entries[0] if row >= 0}
    largest = _largest_k(trained)
    return state.Limits(
        min(trained.config.attention.k, largest),
        largest,
        bank.n_classes,
        trained.fitted.attention.heads,
        trained.bundle.is_entry,
        shown.__contains__,
        len(shown) - 1,
    )


def _take_away(trained: AttnKNN, found: Queries, setting: state.Setting) -> None:
    """Offer the numbers behind the view: as tables, as files, and as code that makes them again.

    They are made when the visitor asks for them: tables bring pandas into the process, and much script into
    the browser.
    """
    place = st.expander("The numbers behind this view", icon=":material/table:", key="numbers", on_change="rerun")
    if place.open:
        with place:
            _show_tables(trained, found, setting)


def _show_tables(trained: AttnKNN, found: Queries, setting: state.Setting) -> None:
    by_hand = ByHand(setting.flips, setting.dropped, setting.muted)
    prediction = decide_by_hand(trained, found, by_hand, setting.k, setting.noise, setting.temperature)
    neighbors, votes = prediction.neighbors_frame(), prediction.votes_frame()
    st.caption(
        "One row per neighbor and head: the label before and after the noise set above, weight, score, and what each "
        "term added to the score."
    )
    st.dataframe(neighbors, hide_index=True)
    st.caption("One row per vote and class, before and after calibration.")
    st.dataframe(votes, hide_index=True)
    row = st.container(horizontal=True)
    stem = str(prediction.queries.ids[0]).replace("/", "-")
    row.download_button("neighbors.csv", neighbors.to_csv(index=False), f"{stem}-neighbors.csv", "text/csv")
    row.download_button("votes.csv", votes.to_csv(index=False), f"{stem}-votes.csv", "text/csv")
    document = json.dumps(prediction.to_dict(), indent=2)
    row.download_button("prediction.json", document, f"{stem}.json", "application/json")
    st.caption("The same from Python and from the terminal:")
    if prediction.queries.labels is not None:
        st.code(_python_snippet(trained, prediction, by_hand), language="python")
    st.code(_terminal_snippet(trained, prediction, by_hand), language="bash")


def _tell_labels(trained: AttnKNN) -> None:
    """Say which labels vote, where they are not the dataset's own: their mistakes are not hatched."""
    if before := write_labels(trained.config):
        st.caption(
            f"The entries carry the labels that training saw: **{before}**. Label noise comes on top of them, and only "
            "what it flips is hatched."
        )


def _change_checkpoint() -> None:
    """Write the chosen checkpoint into the address, and forget what belongs to the one before."""
    gone = dict.fromkeys(("query", "flips", "dropped", "muted", "neighbor"))
    links.write(gone | {"checkpoint": st.session_state["checkpoint"]})


def _largest_k(trained: AttnKNN) -> int:
    return min(POOL, trained.queries.pool.k)


def _python_snippet(trained: AttnKNN, prediction: Prediction, by_hand: ByHand) -> str:
    noise, query = prediction.noise, str(prediction.queries.ids[0])
    how = f"k={prediction.k}, noise=noise, temperature={prediction.temperature}"
    if by_hand == ByHand():
        return (
            "from attnknn import LabelNoise, load\n\n"
            f"noise = LabelNoise({noise.kind!r}, {noise.rate}, seed={noise.seed})\n"
            f"prediction = load({trained.name!r}).predict_items([{query!r}], {how})\n"
            "prediction.neighbors_frame()"
        )
    return (
        "from attnknn import LabelNoise, load\n"
        "from attnknn.by_hand import ByHand, decide_by_hand\n\n"
        f"classifier = load({trained.name!r})\n"
        f"noise = LabelNoise({noise.kind!r}, {noise.rate}, seed={noise.seed})\n"
        f"by_hand = ByHand(flips={dict(by_hand.flips)!r}, dropped={by_hand.dropped!r}, muted={by_hand.muted!r})\n"
        f"prediction = decide_by_hand(classifier, classifier.ask([{query!r}]), by_hand, {how})\n"
        "prediction.neighbors_frame()"
    )


def _terminal_snippet(trained: AttnKNN, prediction: Prediction, by_hand: ByHand) -> str:
    noise = prediction.noise
    query = "--image FILE" if prediction.queries.labels is None else f"--query {prediction.queries.ids[0]}"
    changes = [f"--flip {entry}:{label} " for entry, label in by_hand.flips.items()]
    changes += [f"--drop {entry} " for entry in by_hand.dropped] + [f"--mute {head} " for head in by_hand.muted]
    return (
        f"python -m attnknn predict {trained.name} {query} --k {prediction.k} "
        f"--noise {noise.rate} --noise-kind {noise.kind} --seed {noise.seed} "
        f"--temperature {prediction.temperature} {''.join(changes)}--json"
    )
