"""From errors to sentences: the only place of the app that catches."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from attnknn.errors import AttnKNNError

T = TypeVar("T")
WORD_JOINER = "\u2060"
log = logging.getLogger("attnknn.ui")


@contextmanager
def explained(then_stop: bool = True) -> Iterator[None]:
    """Show a visitor's situation as its sentence, and anything unforeseen as a number to report.

    A traceback goes to the log of the server, never to the page. The page stops where it was, or goes on
    after this block; what the visitor had set stays in the controls and in the URL.
    """
    try:
        yield
    except AttnKNNError as error:
        st.error(literal(str(error)), icon=":material/info:")
        if then_stop:
            st.stop()
    except Exception:
        number = uuid.uuid4().hex[:8]
        log.exception("unforeseen error %s", number)
        st.error(
            f"This page broke, and the fault is ours. The server's log has the details under **{number}**. "
            "Change a setting or reload the page; nothing you set is lost.",
            icon=":material/error:",
        )
        if then_stop:
            st.stop()


def or_sentence(ask: Callable[[], T]) -> T | str:
    """Return what is asked for, or else the sentence why it cannot be had: for a list that shows the others."""
    try:
        return ask()
    except AttnKNNError as error:
        return str(error)


def notice(sentence: str) -> None:
    """Show a sentence that may repeat what a link said."""
    st.warning(literal(sentence), icon=":material/info:")


def literal(text: str) -> str:
    r"""Keep Markdown from reading a text, so that what a link says cannot put pictures or links on a page.

    An address is broken by an invisible character, since Markdown finds addresses after it has read escapes.

    Example:
        >>> print(literal("k=![x](y)"))
        k\=\!\[x\]\(y\)
    """
    broken = re.sub(r"(?i)(?<=://)|(?<=www)(?=\.)|(?<=@)", WORD_JOINER, text)
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", broken)
