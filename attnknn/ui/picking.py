"""Which query is looked at: the link names it, and the board may ask for another, by its id or by what is wanted.

What a finder says of a query ("mistakes: 3 of 17") is kept for the visitor until another is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import streamlit as st

from attnknn.classifier import AttnKNN
from attnknn.evaluation.finders import FINDERS
from attnknn.ui import links, state, store, upload
from attnknn.ui.board import Picker
from attnknn.ui.display import notice

LISTED = 200
"""Test items that are offered by their ids; any other can be typed."""

ANY = "random"
_WORDS = "words_about_query"  # a query, and what was said when it was asked for


def asked(trained: AttnKNN) -> str:
    """Return the id that the link names: of an item, or of one of the last pictures of this visitor."""
    upload.show_next(trained)
    first = str(trained.queries.ids[0])
    said = links.read().get("query", first)
    if is_known(trained, said):
        return said
    if not links.is_ours():
        notice(state.complain("query", expected(trained), said, first))
    return first


def is_known(trained: AttnKNN, query: str) -> bool:
    """Whether there is something that can be asked about by this id."""
    return query in trained.bundle.rows or upload.find(query, trained) is not None


def expected(trained: AttnKNN) -> str:
    """Say what an id may be."""
    first = trained.queries.ids[0]
    return f"the id of a test item, such as {first}, or of a picture embedded here for this checkpoint"


def offer(trained: AttnKNN, query: str) -> Picker:
    """List what the board offers in the place of a query."""
    first, *others = [str(item) for item in trained.queries.ids[:LISTED]]
    about, words = st.session_state.get(_WORDS, ("", ""))
    return {
        "ids": [first, *upload.recent(trained, query), *others],
        "finders": [ANY, *FINDERS],
        "words": words if about == query else "",
    }


def follow(trained: AttnKNN, setting: state.Setting, query: str, said: Mapping[str, str]) -> str | None:
    """Return the query that the board asks for; None where it asks for none that can be had, and say why."""
    wanted, words = said.get("query") or None, ""
    if finder := said.get("find"):
        wanted, words = find_next(trained, setting, query, finder)
    elif wanted and not is_known(trained, wanted):
        words = f"There is no “{state.shorten(wanted)}”. It must be {expected(trained)}."
        wanted = None
    if wanted or words:
        st.session_state[_WORDS] = (wanted or query, words)
    return wanted


def find_next(trained: AttnKNN, setting: state.Setting, query: str, finder: str) -> tuple[str | None, str]:
    """Step to the next query that a finder finds under a setting, after the last to the first; and say where one is.

    Returns:
        The id, None where nothing is found, and the words.
    """
    if finder not in FINDERS:
        return str(random.choice(trained.queries.ids)), ""
    by_finder = store.found_queries(trained.name, store.digest(trained), setting.k, setting.noise, setting.temperature)
    found = by_finder[finder]
    if not found:
        return None, f"{finder}: none under this setting"
    place = (found.index(query) + 1) % len(found) if query in found else 0
    return found[place], f"{finder}: {place + 1} of {len(found)}"
