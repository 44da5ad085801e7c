"""What every page stands in: the list of pages, and the guard that keeps a page inside the app.

With a folder named `pages/`, Streamlit answers the first deep link of a fresh server by running the
page alone, without `app.py`. The guard notices, and runs it again inside.
"""

from __future__ import annotations

import streamlit as st

TITLE = "Attn-KNN Explorer"
_INSIDE = "_inside_app"


def pages() -> list[st.Page]:
    """List the pages of the top navigation, home first."""
    return [st.Page("pages/neighbors.py", title="Neighbors", icon=":material/hub:", default=True)]


def run() -> None:
    """Open the door: page settings, navigation, and the page that was asked for."""
    st.set_page_config(page_title=TITLE, page_icon=":material/hub:", layout="wide")
    page = st.navigation(pages(), position="top")
    st.session_state[_INSIDE] = True
    page.run()


def require() -> None:
    """Make sure that this page runs inside `app.py`; the first lines of every page call this."""
    if not st.session_state.pop(_INSIDE, False):
        st.navigation(pages(), position="top")
        st.rerun()
