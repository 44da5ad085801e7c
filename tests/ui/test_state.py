"""What a link may set, and the sentence when it does not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.config import NOISE_KINDS
from attnknn.ui import state
from attnknn.ui.display import literal
from tests.ui.apps import plain

KNOWN = {one.name: one for one in state.settings(largest_k=64, example="digits/test/0")}


@pytest.mark.parametrize(
    ("name", "said", "shown", "agrees"),
    [
        ("k", "16", 16, True),
        ("k", "016", 16, True),
        ("k", "banana", 16, False),
        ("k", "", 16, False),
        ("k", "65", 16, False),
        ("noise", "0.30", 0.3, True),
        ("noise", "nan", 0.0, False),
        ("noise", "inf", 0.0, False),
        ("temperature", "2.0", 2.0, True),
        ("temperature", "7", 1.0, False),
        ("seed", "5.7", 6, False),
        ("kind", "pair", "pair", True),
        ("kind", "Pair", "symmetric", False),
        ("query", "digits/test/1", "digits/test/1", True),
        ("query", "iris/test/1", "digits/test/0", False),
        ("neighbor", "nobody", "digits/train/93", False),
    ],
)
def test_a_link_agrees_with_what_is_shown_or_does_not(name, said, shown, agrees):
    assert KNOWN[name].agrees(said, shown) is agrees


def test_a_complaint_says_what_was_expected_what_came_and_what_is_shown():
    assert state.complaints({"k": "banana"}, [*KNOWN.values()], {"k": 16}) == [
        "k must be a whole number between 1 and 64; the link says k=banana. Showing k = 16."
    ]


def test_complaints_come_in_the_order_of_the_controls_and_only_for_what_the_link_says():
    shown = {"query": "digits/test/0", "k": 16, "seed": 0, "kind": "symmetric"}
    link = {"seed": "x", "kind": "symmetric", "query": "y", "somebody": "else"}
    said = [sentence.split()[0] for sentence in state.complaints(link, [*KNOWN.values()], shown)]
    assert said == ["query", "seed"]


@given(st.sampled_from(sorted(KNOWN)), st.text())
def test_no_text_breaks_the_check_and_no_sentence_grows_with_it(name, said):
    known = [*KNOWN.values()]
    assert len(state.complaints({name: said}, known, {name: None})[0]) < 250
    assert state.complaints({name: said * 1000}, known, {name: None})


@pytest.mark.parametrize("temperature", state.TEMPERATURES)
def test_every_temperature_can_be_named_in_a_link(temperature):
    assert KNOWN["temperature"].agrees(str(temperature), temperature)
    assert f" {temperature}" in KNOWN["temperature"].expected


def test_one_is_among_the_temperatures_and_all_are_ascending():
    assert 1.0 in state.TEMPERATURES
    assert sorted(set(state.TEMPERATURES)) == list(state.TEMPERATURES)
    assert all(kind in KNOWN["kind"].expected for kind in NOISE_KINDS)


def test_a_text_is_cut_only_where_it_is_too_long():
    assert state.shorten("x" * state.LONGEST) == "x" * state.LONGEST
    assert state.shorten("x" * (state.LONGEST + 1)) == "x" * state.LONGEST + "…"


@given(st.text())
def test_a_literal_is_read_as_it_was_written(text):
    assert plain(literal(text)).replace("\u2060", "") == text.replace("\u2060", "")


@given(st.text("![]()<>*_`$:#|~&-\\ ab"))
def test_a_literal_leaves_markdown_nothing_to_read(text):
    left = literal(text)
    for mark in "![]()<>*_`$:#|~&-":
        assert left.count(f"\\{mark}") == left.count(mark)
