"""The Python side of the board: what is sent, what is kept, what comes back."""

import pytest
from streamlit.testing.v1 import AppTest

from attnknn.ui import board
from tests.ui.boards import make_board


def page(data):
    import streamlit as st

    from attnknn.ui.board import draw_board

    st.text(f"chosen: {draw_board(data, key='board')}")


def run(data, state=None):
    app = AppTest.from_function(page, kwargs={"data": data}, default_timeout=20)
    if state is not None:
        app.session_state["board"] = state
    app.run()
    assert not app.exception
    return app.text[0].value


@pytest.mark.parametrize("kind", ["image", "table"])
def test_nothing_is_chosen_at_first(kind):
    assert run(make_board(kind=kind)) == "chosen: None"


def test_the_offered_neighbor_holds_until_somebody_chooses():
    data = {**make_board(), "selected": "train/3"}
    assert run(data) == "chosen: train/3"
    assert run(data, {"neighbor": "train/5"}) == "chosen: train/5"


def test_a_choice_given_back_leaves_the_nearest_whatever_is_offered():
    for offered in (None, "train/3", "train/9"):
        assert run({**make_board(), "selected": offered}, {"neighbor": None}) == "chosen: train/0"


def test_a_choice_that_is_not_shown_gives_way():
    assert run(make_board(k=4), {"neighbor": "train/5"}) == "chosen: None"
    assert run({**make_board(k=4), "selected": "train/2"}, {"neighbor": "train/5"}) == "chosen: train/2"
    assert run({**make_board(k=4), "selected": "train/9"}) == "chosen: None"


def test_scripts_never_turn_data_into_markup():
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in board.read_js()


def test_nothing_is_fetched_from_elsewhere():
    text = (board.read_js() + board.read_css() + board.read_html()).replace("http://www.w3.org/2000/svg", "")
    for way in ("http:", "https:", "//cdn", "@import", "import("):
        assert way not in text
