"""From errors to sentences: the only place of the app that catches."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from attnknn.errors import AttnKNNError

log = logging.getLogger("attnknn.ui")


@contextmanager
def explained() -> Iterator[None]:
    """Show a visitor's situation as its sentence, and anything unforeseen as a number to report.

    A traceback goes to the log of the server, never to the page. The page stops where it was; what the
    visitor had set stays in the controls and in the URL.
    """
    try:
        yield
    except AttnKNNError as error:
        st.error(str(error), icon=":material/info:")
        st.stop()
    except Exception:
        number = uuid.uuid4().hex[:8]
        log.exception("unforeseen error %s", number)
        st.error(
            f"This page broke, and the fault is ours. The server's log has the details under **{number}**. "
            "Change a setting or reload the page; nothing you set is lost.",
            icon=":material/error:",
        )
        st.stop()
