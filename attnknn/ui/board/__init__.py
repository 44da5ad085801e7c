"""The board: one query, its neighbors, what each head gives them, and the votes; all of it moves while you drag.

A Streamlit component (v2) in plain JavaScript, HTML and CSS, a script and a style per part of the
picture and no build step: the files are read once, when this module is imported. It gets what one query needs
(`BoardData`), and from then on casts the votes itself. What somebody sets is told to the server once it is let go.

    bank.js      the bank at a stop of the noise   query.js     the query and its answers
    votes.js     every vote, as in Python          cards.js     one card per neighbor
    compose.js   from votes to what is drawn       heat.js      heads × neighbors
    controls.js  sliders, and what is by hand      race.js      the votes as stacked bars
    dom.js       make and change elements          curve.js     the votes as noise grows
    sheet.js     colors and atlas as style rules   ledger.js    why a neighbor has its weight
    flips.js     which flips change an answer      mind.js      these flips as cards
    reach.js     what so many flips can do         board.js     links, keyboard, entry point
    picker.js    another query

Names of classes, features and items are untrusted text: the scripts only ever set them as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import streamlit as st

from attnknn.ui.atlas import Atlas

Feature = tuple[str, str]  # name, value as it should be read ("14.2 mm")


class Query(TypedDict):
    """The item being classified.

    Attributes:
        label: Its true label; None where nobody knows it.
        values: Its features, for tables.
    """

    id: str
    label: str | None
    values: list[Feature] | None


class Picker(TypedDict):
    """What else can be looked at.

    Attributes:
        ids: Queries that are offered by their ids; any other can be typed.
        finders: Names of ways to find one.
        words: What a finder, or the search for an id, says of the query that is shown.
    """

    ids: list[str]
    finders: list[str]
    words: str


class Source(TypedDict):
    """What a view is computed from, in words: the search, labels of training that were changed, and the fit."""

    search: str
    labels: str
    fit: str


class BoardData(TypedDict):
    """Everything that the board needs of one query, as plain JSON types.

    Attributes:
        kind: Whether neighbors are drawn as thumbnails or as feature values.
        classes: C class names.
        colors: C colors, `attnknn.ui.palette.class_colors(C)`.
        heads: H heads: `name`, and `why`, what it was found to listen to.
        votes: `name` and `title`: uniform, distance, attention, then the others; the first three race.
        values: For tables, the features to show on each neighbor's card; three or four fit.
        atlas: The query and then its neighbors, nearest first; None for tables.
        controls: What can be set: `largest_k`, `temperatures`, `highest_rate`, `kinds`, `largest_seed`, `most_flips`,
            `most_dropped`.
        setting: What is set: the fields of `attnknn.ui.state.Setting`, with `rate`, `kind` and `seed` of the noise.
        heard: Number of the last thing that the board said and that this answers.
        live: `attnknn.ui.live.lay_out(...)`.
    """

    kind: Literal["image", "table"]
    classes: list[str]
    colors: list[str]
    query: Query
    picker: Picker
    heads: list[dict[str, str]]
    votes: list[dict[str, str]]
    values: list[list[Feature]] | None
    atlas: Atlas | None
    source: Source
    controls: dict[str, Any]
    setting: dict[str, Any]
    heard: int
    live: dict[str, Any]


SCRIPTS = (
    *("dom", "sheet", "bank", "votes", "reach", "flips", "compose", "controls"),
    *("picker", "query", "cards", "heat", "race", "curve", "mind", "ledger", "board"),
)
STYLES = ("board", "controls", "query", "cards", "heat", "race", "curve", "ledger", "narrow")


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


def draw_board(data: BoardData, key: str, on_said: Callable[[], None]) -> None:
    """Draw the board.

    Args:
        data: What it needs.
        key: Unique key of this board on the page.
        on_said: Called before the page runs again, when the board has said something; see `said_by`.
    """
    _mount(key=key, data=_pack(data), on_said_change=on_said)


def said_by(key: str) -> tuple[int, dict[str, str]]:
    """Return the last thing that a board said: its number, and a link in text; both are a visitor's words.

    Numbers grow; the link says all that can be set, and nothing ("") where it is as it is anyway.
    """
    state = st.session_state.get(key)
    said = state.get("said") if isinstance(state, Mapping) else None
    said = said if isinstance(said, Mapping) else {}
    number, link = said.get("number"), said.get("link")
    texts = link.items() if isinstance(link, Mapping) else ()
    return number if isinstance(number, int) else 0, {str(name): text for name, text in texts if isinstance(text, str)}


def _pack(data: BoardData) -> bytes:
    """Turn data into bytes of JSON: given a dict, Streamlit would import pandas to look for data frames in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
