"""The page's own address: read when the page runs, written when somebody sets something."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

WRITTEN = "written_link"  # what the address says because of this page


def read() -> dict[str, str]:
    """Return what the address says."""
    return st.query_params.to_dict()


def write(changes: Mapping[str, str | None]) -> None:
    """Change parts of the address; None takes one out. The browser's Back returns to what it said before."""
    link = {name: value for name, value in {**read(), **changes}.items() if value is not None}
    if link != read():
        st.query_params.from_dict(link)
    st.session_state[WRITTEN] = link


def is_ours() -> bool:
    """Whether the address says what this page wrote: nobody needs to be told what is wrong with it."""
    return st.session_state.get(WRITTEN) == read()
