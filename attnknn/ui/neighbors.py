"""The parts of the Neighbors page, in the order in which the page calls them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.classifier import AttnKNN
from attnknn.config import NOISE_KINDS, LabelNoise
from attnknn.errors import UnknownCheckpoint
from attnknn.prediction import Prediction
from attnknn.ui import preparing, state, store, upload
from attnknn.ui.board import draw_board
from attnknn.ui.display import notice
from attnknn.ui.labels import write_labels
from attnknn.ui.present import describe_source, present

BOARD = "board"
NEIGHBOR = "neighbor"
LISTED = 200
"""Test items in the list of queries: ten thousand would take a second at every move."""

ICONS = {
    "mistakes": ":material/close:",
    "most uncertain": ":material/question_mark:",
    "votes disagree": ":material/call_split:",
}


@dataclass(frozen=True)
class Setting:
    """How the votes on the board are cast."""

    k: int
    temperature: float
    noise: LabelNoise


def picking_row() -> DeltaGenerator:
    """Lay out the row in which a visitor picks what to look at; it wraps on narrow screens."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="small")


def knobs_row() -> DeltaGenerator:
    """Lay out the row of knobs."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="knobs")


def choose_checkpoint(place: DeltaGenerator) -> AttnKNN:
    """Let the visitor choose a checkpoint, and load it.

    Raises:
        UnknownCheckpoint: There is none at all.
        CheckpointError: The chosen one cannot be trusted.
    """
    names = store.names()
    if not names:
        raise UnknownCheckpoint("digits", names)
    asked = st.query_params.get("checkpoint", names[0])
    if asked not in names:
        notice(f"{UnknownCheckpoint(state.shorten(asked), names)} Showing {names[0]}.")
    name = place.selectbox("Checkpoint", names, key="checkpoint", bind="query-params", width=170)
    preparing.see_to(name)
    return store.classifier(name)


def read_link() -> dict[str, str]:
    """Return what a link says to widgets that are not there yet; later, what is set is the visitor's."""
    return {} if BOARD in st.session_state else st.query_params.to_dict()


def check_link(link: Mapping[str, str], trained: AttnKNN, prediction: Prediction) -> None:
    """Say what of a link did not fit, and what is shown instead."""
    noise, ids = prediction.noise, [str(item) for item in prediction.entries.ids[prediction.neighbors[0]]]
    shown = {"query": str(prediction.queries.ids[0]), "k": prediction.k, "temperature": prediction.temperature}
    shown |= {"noise": noise.rate, "kind": noise.kind, "seed": noise.seed}
    shown |= {"neighbor": link[NEIGHBOR] if link.get(NEIGHBOR) in ids else ids[0]}
    for complaint in state.complaints(link, state.settings(_largest_k(trained), str(trained.queries.ids[0])), shown):
        notice(complaint)


def choose_query(trained: AttnKNN, place: DeltaGenerator) -> str:
    """Let the visitor choose an item by its id, or one of the last pictures of their own.

    The list holds the first test items, and whatever else a link or a finder asks about.
    """
    upload.show_next(trained)
    first, *others = [str(item) for item in trained.queries.ids[:LISTED]]
    asked = str(st.session_state.get("query") or st.query_params.get("query", first))
    if asked in trained.bundle.rows:
        others.append(asked)
    ids = list(dict.fromkeys([first, *upload.recent(trained, asked), *others]))  # links leave the first one out
    if st.session_state.get("query", first) not in ids:  # another checkpoint was chosen
        st.session_state["query"] = first
    return place.selectbox(
        "Query",
        ids,
        key="query",
        bind="query-params",
        width=230,
        help="The item being classified. Type to search by id.",
    )


def choose_setting(trained: AttnKNN, row: DeltaGenerator) -> Setting:
    """Let the visitor set k, temperature and label noise."""
    largest = _largest_k(trained)
    default = min(trained.config.attention.k, largest)
    if st.session_state.get("k", 1) > largest:
        st.session_state["k"] = default
    k = row.slider(
        "neighbors k",
        1,
        largest,
        default,
        key="k",
        bind="query-params",
        width=220,
        help="How many of the nearest entries vote.",
    )
    temperature = row.select_slider(
        "temperature",
        state.TEMPERATURES,
        1.0,
        key="temperature",
        bind="query-params",
        width=220,
        help="Divides the scores of the distance and attention votes. Small: the best neighbor decides. "
        "Large: everyone has the same say.",
    )
    rate = row.slider(
        "label noise",
        0.0,
        state.HIGHEST_RATE,
        0.0,
        0.01,
        format="percent",
        key="noise",
        bind="query-params",
        width=220,
        help="Share of the bank's labels that are replaced. A larger rate only adds flips.",
    )
    kind = row.selectbox(
        "noise kind",
        NOISE_KINDS,
        key="kind",
        bind="query-params",
        width=150,
        help="symmetric: any other class, equally likely. pair: the next class. matrix: a class that looks alike.",
    )
    seed = row.number_input(  # of floats, since Streamlit stumbles over ?seed=inf where it expects an int
        "seed",
        0.0,
        float(state.LARGEST_SEED),
        0.0,
        1.0,
        format="%.0f",
        key="seed",
        bind="query-params",
        width=150,
        help="Names the draw of label noise.",
    )
    _tell_labels(trained)
    return Setting(int(k), float(temperature), LabelNoise(kind, float(rate), int(seed + 0.5)))


def offer_finders(trained: AttnKNN, setting: Setting, query: str, row: DeltaGenerator) -> None:
    """Offer buttons that step through queries worth looking at, under the setting in force."""
    ids = [str(item) for item in trained.queries.ids]
    row.button("random", icon=":material/casino:", key="find_random", on_click=_go_to, args=(random.choice(ids),))
    found_by = store.found_queries(trained.name, store.digest(trained), setting.k, setting.noise, setting.temperature)
    for finder, found in found_by.items():
        here = found.index(query) + 1 if query in found else 0
        row.button(
            finder,
            icon=ICONS[finder],
            key=f"find_{finder.replace(' ', '_')}",
            on_click=_go_to,
            args=(found[here % len(found)] if found else query,),
            disabled=not found,
            help=f"{here or '–'} of {len(found)} test items" if found else "None under this setting.",
        )
    upload.offer(trained, query, row)


def draw(trained: AttnKNN, query: str, setting: Setting) -> Prediction:
    """Classify the query, draw the board, and keep the chosen neighbor in the URL."""
    own, k, noise, temperature = upload.find(query, trained), setting.k, setting.noise, setting.temperature
    found = trained.ask_embedded(own.key[None], own.logits[None], k, [query]) if own else trained.ask([query], k)
    prediction, digest = trained.decide(found, k, noise, temperature), store.digest(trained)
    response = store.noise_response(trained, found, digest, query, k, noise.kind, noise.seed, temperature)
    asked = st.query_params.get(NEIGHBOR)
    provenance = describe_source(trained, prediction, digest)
    listening = store.listening(trained, digest)
    board = present(trained, prediction, response, provenance, listening, asked, own.values if own else None)
    chosen = draw_board(board, BOARD)
    nearest = board["neighbors"][0]["id"]
    if chosen is None or chosen == nearest:
        st.query_params.pop(NEIGHBOR, None)
    elif chosen != asked:
        st.query_params[NEIGHBOR] = chosen
    return prediction


def take_away(trained: AttnKNN, prediction: Prediction) -> None:
    """Offer the numbers behind the view: as tables, as files, and as code that makes them again.

    They are made when the visitor asks for them: tables bring pandas into the process, and much script into
    the browser.
    """
    place = st.expander("The numbers behind this view", icon=":material/table:", key="numbers", on_change="rerun")
    if place.open:
        with place:
            _show_tables(trained, prediction)


def _show_tables(trained: AttnKNN, prediction: Prediction) -> None:
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
        st.code(_python_snippet(trained, prediction), language="python")
    st.code(_terminal_snippet(trained, prediction), language="bash")


def _tell_labels(trained: AttnKNN) -> None:
    """Say which labels vote, where they are not the dataset's own: their mistakes are not hatched."""
    if before := write_labels(trained.config):
        st.caption(
            f"The entries carry the labels that training saw: **{before}**. Label noise comes on top of them, and only "
            "what it flips is hatched."
        )


def _go_to(query: str) -> None:
    st.session_state["query"] = query


def _largest_k(trained: AttnKNN) -> int:
    return min(state.LARGEST_K, trained.queries.pool.k)


def _python_snippet(trained: AttnKNN, prediction: Prediction) -> str:
    noise, query = prediction.noise, str(prediction.queries.ids[0])
    return (
        "from attnknn import LabelNoise, load\n\n"
        f"noise = LabelNoise({noise.kind!r}, {noise.rate}, seed={noise.seed})\n"
        f"prediction = load({trained.name!r}).predict_items([{query!r}], k={prediction.k}, noise=noise, "
        f"temperature={prediction.temperature})\n"
        "prediction.neighbors_frame()"
    )


def _terminal_snippet(trained: AttnKNN, prediction: Prediction) -> str:
    noise = prediction.noise
    query = "--image FILE" if prediction.queries.labels is None else f"--query {prediction.queries.ids[0]}"
    return (
        f"python -m attnknn predict {trained.name} {query} --k {prediction.k} "
        f"--noise {noise.rate} --noise-kind {noise.kind} --seed {noise.seed} "
        f"--temperature {prediction.temperature} --json"
    )
