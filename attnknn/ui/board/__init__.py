"""The board: one query, the neighbors that were asked, what each head gave them, and the votes.

A Streamlit component (v2) in plain JavaScript, HTML and CSS, a script and a style per part of the
picture and no build step: the files are read once, when this module is imported. Every number is computed
before it comes here; the board draws it, and links its parts in the browser while the pointer or
the keyboard moves. The one thing it says back is the id of the neighbor somebody chose.

    dom.js      make and change elements            race.js     the votes as stacked bars
    sheet.js    colors and atlas as style rules     curve.js    the votes as noise grows
    query.js    the query and its answers           ledger.js   why a neighbor has its weight
    cards.js    one card per neighbor               board.js    links, keyboard, entry point
    heat.js     heads × neighbors

Names of classes, features and items are untrusted text: the scripts only ever set them as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

import streamlit as st

from attnknn.ui.atlas import Atlas

Feature = tuple[str, str]  # name, value as it should be read ("14.2 mm")


class Query(TypedDict):
    """The item being classified.

    Attributes:
        label: Its true label; None where nobody knows it.
        tile: Its place in the atlas, for images.
        values: Its features, for tables.
    """

    id: str
    label: str | None
    tile: int | None
    values: list[Feature] | None


class Head(TypedDict):
    """One head: its name, its job in one sentence, its sink's mass, its effective neighbors."""

    name: str
    why: str
    sink: float
    effective: float


class Neighbor(TypedDict):
    """One retrieved entry.

    Attributes:
        rank: From 1, nearest first.
        distance: Euclidean, on the unit sphere.
        weights: H numbers: its weight under each head, after the sink took its part.
        share: Mean of `weights`: its part of the attention vote.
        terms: For each name in `BoardData.terms`, H numbers: what the term adds to its score.
        tile: Its place in the atlas, for images.
        values: The features to show on its card, for tables; three or four fit.
    """

    id: str
    rank: int
    distance: float
    clean_label: str
    observed_label: str
    is_flipped: bool
    weights: list[float]
    share: float
    terms: dict[str, list[float]]
    tile: int | None
    values: list[Feature] | None


class Vote(TypedDict):
    """One vote.

    Attributes:
        title: Its name as it is shown.
        probabilities: C numbers, in the order of `BoardData.classes`.
        is_correct: None where the true label is unknown.
        weights: K numbers that sum to one with `sink`; None for a vote that asks no neighbors.
        effective: Effective neighbors.
    """

    name: str
    title: str
    probabilities: list[float]
    predicted: str
    is_correct: bool | None
    weights: list[float] | None
    sink: float
    effective: float | None


class Curve(TypedDict):
    """Probability of one class over noise rates, by vote.

    Attributes:
        subject: The class in words: `the true label`, or what stands in for it.
        rates: R noise rates, ascending, each in [0, 1].
        rate: The current one.
        probability: R numbers for each vote by name.
        leaves: The first rate at which a vote no longer predicts that class; None is never.
    """

    subject: str
    rates: list[float]
    rate: float
    probability: dict[str, list[float]]
    leaves: dict[str, float | None]


class BoardData(TypedDict):
    """Everything the board draws, as plain JSON types.

    Attributes:
        kind: Whether neighbors are drawn as thumbnails or as feature values.
        classes: C class names; every label is one of them.
        colors: C colors, `attnknn.ui.palette.class_colors(C)`.
        terms: Names of the score's terms, in the order of the ledger.
        neighbors: K neighbors, nearest first.
        votes: Uniform, distance, attention, then the others; the first three race.
        atlas: `attnknn.ui.atlas.pack_atlas(...)`; None for tables.
        provenance: One line: search, n, noise and seed, checkpoint.
        selected: Id of the chosen neighbor, or None.
        temperature: Divides the scores before the softmax, where `terms` are not divided yet; 1
            when absent.
    """

    kind: Literal["image", "table"]
    classes: list[str]
    colors: list[str]
    query: Query
    heads: list[Head]
    terms: list[str]
    neighbors: list[Neighbor]
    votes: list[Vote]
    curve: Curve | None
    atlas: Atlas | None
    provenance: str
    selected: str | None
    temperature: NotRequired[float]


SCRIPTS = ("dom", "sheet", "query", "cards", "heat", "race", "curve", "ledger", "board")
STYLES = ("board", "query", "cards", "heat", "race", "curve", "ledger", "narrow")


def read_html() -> str:
    """Return the skeleton that the scripts fill."""
    return _read("board.html")


def read_css() -> str:
    """Return the styles, one file per part, in the order in which they override each other."""
    return "\n".join(_read(f"{name}.css") for name in STYLES)


def read_js() -> str:
    """Return the scripts as one module; its default export draws."""
    return "\n".join(_read(f"{name}.js") for name in SCRIPTS)


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_mount = st.components.v2.component(
    "attnknn_board",
    html=read_html(),
    css=read_css(),
    js=read_js(),
)


def draw_board(data: BoardData, key: str) -> str | None:
    """Draw the board and return the neighbor that is chosen on it.

    A choice holds while the chosen neighbor is among those shown. Until somebody chooses, and
    where the chosen one is not shown, `data["selected"]` holds. A choice that was given back leaves
    the nearest.

    Args:
        data: What to draw; see `BoardData`.
        key: Unique key of this board on the page; its state is `st.session_state[key]`.

    Returns:
        Id of the chosen neighbor, or None.
    """
    shown = [neighbor["id"] for neighbor in data["neighbors"]]
    selected = _selected(st.session_state.get(key), data["selected"], shown)
    _mount(key=key, data=_pack({**data, "selected": selected}), on_neighbor_change=lambda: None)
    return selected


def _pack(data: BoardData) -> bytes:
    """Turn data into bytes of JSON: given a dict, Streamlit would import pandas to look for data frames in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _selected(state: Any, offered: str | None, shown: list[str]) -> str | None:
    if isinstance(state, Mapping) and "neighbor" in state:
        chosen = cast("str | None", state["neighbor"])
        if chosen is None:
            return shown[0]
        if chosen in shown:
            return chosen
    return offered if offered in shown else None
