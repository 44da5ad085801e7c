"""What every page stands in: the list of pages, and the guard that keeps a page inside the app.

With a folder named `pages/`, Streamlit answers the first deep link of a fresh server by running the
page alone, without `app.py`. The guard notices, and runs it again inside. A page that is still alone
then was started by itself (`streamlit run pages/neighbors.py`), and shows itself under the same navigation.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

PAGES = Path(__file__).resolve().parents[2] / "pages"
TITLE = "Attn-KNN Explorer"
_INSIDE = "_inside_app"
_SENT_INSIDE = "_sent_inside_app"
_ICON = (  # drawn here, since the tab's icon by name is fetched from a host of Google's
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="#DF1560" stroke="#DF1560" stroke-width="1.6">'
    '<path d="M12 12 5 5M12 12l8-5M12 12l-6 7M12 12l6 7" fill="none"/>'
    '<circle cx="12" cy="12" r="3.4"/><circle cx="5" cy="5" r="1.8"/><circle cx="20" cy="7" r="1.8"/>'
    '<circle cx="6" cy="19" r="1.8"/><circle cx="18" cy="19" r="1.8"/></svg>'
)
_STYLE = """<style>
.stMainBlockContainer { padding: 3.6rem clamp(0.75rem, 2.5vw, 2.5rem) 2rem; max-width: 1560px; }
.st-key-headline h1 { padding: 0; letter-spacing: -0.01em; }
.st-key-headline [data-testid="stCaptionContainer"] { opacity: 0.78; }
.st-key-board { min-height: 800px; }
/* Streamlit dims what waits for its script by a transition of opacity, and the browser lifts every element onto a layer
   of its own for it, and paints the page anew, though most runs are over before it shows. A number of our own fades
   alike without layers. (A less-than sign would make Streamlit drop the whole style.) */
@property --shown { syntax: "\\3c number>"; inherits: false; initial-value: 1; }
.stElementContainer[data-stale="true"] { --shown: 0.33; opacity: var(--shown); transition: --shown 1s ease-in 0.5s; }
</style>"""


def pages() -> list[st.Page]:
    """List the pages of the top navigation, home first."""
    return [
        st.Page(PAGES / "neighbors.py", title="Neighbors", icon=":material/hub:", default=True),
        st.Page(PAGES / "training.py", title="Training", icon=":material/model_training:"),
    ]


def run() -> None:
    """Open the door: page settings, navigation, and the page that was asked for."""
    page = _navigate()
    st.session_state.pop(_SENT_INSIDE, None)
    st.session_state[_INSIDE] = True
    page.run()


def headline(question: str, answer: str) -> None:
    """Head a page with the question it answers, and one sentence on how to use it."""
    st.html(_STYLE)
    with st.container(key="headline", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.title(TITLE, width="content", anchor=False)
        st.caption(f"**{question}** {answer}", width="content")


def require() -> None:
    """Make sure that this page runs inside `app.py`; the first lines of every page call this."""
    if st.session_state.pop(_INSIDE, False):
        return
    _navigate()
    if not st.session_state.pop(_SENT_INSIDE, False):
        st.session_state[_SENT_INSIDE] = True
        st.rerun()


def _navigate() -> st.Page:
    """Say what the tab and the list of pages look like, and return the page that was asked for."""
    st.set_page_config(page_title=TITLE, page_icon=_ICON, layout="wide")
    return st.navigation(pages(), position="top")
