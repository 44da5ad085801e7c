"""The Python side of the board: what is sent, and what comes back."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from attnknn.ui import board
from tests.ui.boards import make_board

LINK = {"k": "7", "query": "train/3"}


def page(data):
    from attnknn.ui.board import draw_board

    draw_board(data, key="board", on_said=lambda: None)


def hear(n):
    import json

    import streamlit as st

    from attnknn.ui.board import said_by

    st.text(json.dumps([said_by(f"board {i}") for i in range(n)]))


def run(script, states=(), **arguments):
    app = AppTest.from_function(script, kwargs=arguments, default_timeout=60)
    for i, state in enumerate(states):
        app.session_state[f"board {i}"] = state
    app.run()
    assert not app.exception
    return app


def said(*states):
    """What is heard of boards that left this; of one more, that left nothing, nothing."""
    *heard, last = json.loads(run(hear, states, n=len(states) + 1).text[0].value)
    assert last == [0, {}]
    return [tuple(one) for one in heard]


@pytest.mark.parametrize("kind", ["image", "table"])
def test_what_is_sent_is_the_data_as_json(kind):
    data = make_board(kind=kind)
    (component,) = run(page, data=data).get("bidi_component")
    assert json.loads(component.proto.bytes) == json.loads(json.dumps(data))


def test_what_it_said_comes_back():
    assert said({"said": {"number": 3, "link": LINK}}) == [(3, LINK)]


def test_words_that_are_none_are_not_heard():
    words = [None, "k=7", 7, ["k"], {}, {"number": "3", "link": ["k"]}, {"number": 0.5, "link": "k"}]
    assert said({}, *[{"said": one} for one in words]) == [(0, {})] * (1 + len(words))


def test_only_texts_are_taken_from_a_link():
    assert said({"said": {"number": 1, "link": {**LINK, "seed": 5, "muted": None, "flips": {}}}}) == [(1, LINK)]


def test_scripts_never_turn_data_into_markup():
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in board.read_js()


def test_nothing_is_fetched_from_elsewhere():
    text = (board.read_js() + board.read_css() + board.read_html()).replace("http://www.w3.org/2000/svg", "")
    for way in ("http:", "https:", "//cdn", "@import", "import("):
        assert way not in text
