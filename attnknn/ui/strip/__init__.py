"""The strip: one query, and who its nearest entries were at every look while a run trains.

A Streamlit component (v2) in plain JavaScript. The visitor moves through the epochs in the browser, without
asking the server; until then, the strip stays with the latest look.

Names of classes, features and items are untrusted text: the script only ever sets them as text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import streamlit as st

from attnknn.ui.atlas import Atlas

Shown = TypedDict(
    "Shown",
    {"id": str, "label": str, "class": int, "tile": int | None, "values": list[tuple[str, str]]},
)
"""One item: its id, its label, the number of its class, its place in the atlas, or a few of its features."""


class Look(TypedDict):
    """Who was near after an epoch: the query, then its neighbors, nearest first."""

    epoch: int
    shown: list[Shown]


class StripData(TypedDict):
    """Everything the strip draws, as plain JSON types.

    Attributes:
        looks: In the order of epochs, at least one.
        atlas: Thumbnails; None for tables.
        colors: One per class.
    """

    looks: list[Look]
    atlas: Atlas | None
    colors: list[str]


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_mount = st.components.v2.component(
    "attnknn_strip", html=_read("strip.html"), css=_read("strip.css"), js=_read("strip.js")
)


def draw_strip(data: StripData, key: str) -> None:
    """Draw the strip; mounted again under the same key, it keeps the epoch that somebody looks at."""
    _mount(key=key, data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))
