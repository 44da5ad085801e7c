"""Which of the page's three views is shown; a link may say it."""

from __future__ import annotations

import streamlit as st

from attnknn.ui import state
from attnknn.ui.display import notice

_NEXT = "next_view"
VIEWS = {"now": "what runs", "history": "every run there was", "checkpoints": "what they made"}


def choose() -> str:
    """Let the visitor choose between what runs now, past runs, and checkpoints."""
    asked = st.query_params.get("view")
    if asked is not None and asked not in VIEWS:
        notice(f"view must be one of {', '.join(VIEWS)}; the link says view={state.shorten(asked)}.")
    wanted = st.session_state.pop(_NEXT, None)
    if wanted is not None:
        st.session_state["view"] = wanted
    chosen = st.segmented_control(
        "View",
        list(VIEWS),
        default="now" if wanted is None else None,  # Streamlit warns of a default beside a value that was set
        required=True,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    return str(chosen or "now")


def show_next(view: str) -> None:
    """Show a view when the page is drawn again."""
    if st.session_state.get("view") != view:
        st.session_state[_NEXT] = view
