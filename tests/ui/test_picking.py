"""Which query is looked at: by its id, or by what is wanted of it."""

import re
from functools import lru_cache

import pytest

import attnknn
from attnknn import LabelNoise
from attnknn.evaluation.finders import FINDERS
from attnknn.ui import picking, state, upload
from attnknn.ui.picking import find_next
from attnknn.ui.state import Setting

load = lru_cache(attnknn.load)
NOISY = Setting(32, noise=LabelNoise("symmetric", 0.8))


def step(trained, setting, finder, query, n):
    """The queries that a finder leads to, one after the other, and what it says of each."""
    been = []
    for _ in range(n):
        query, words = find_next(trained, setting, query, finder)
        been.append((query, words))
    return been


@pytest.mark.parametrize("finder", FINDERS)
def test_a_finder_steps_through_what_it_finds(finder):
    trained = load("digits")
    been = step(trained, NOISY, finder, "digits/test/0", 4)
    assert len({query for query, _ in been}) == 4
    for query, words in been:
        assert words.startswith(f"{finder}: ")
        answer = trained.predict_items([query], 32, NOISY.noise).to_dict()
        predicted = {name: vote["predicted"] for name, vote in answer["votes"].items()}
        if finder == "mistakes":
            assert predicted["attention"] != answer["label"]
        if finder == "votes disagree":
            assert len({predicted[name] for name in ("uniform", "distance", "attention")}) > 1


def test_after_the_last_a_finder_starts_again():
    first, second, third = step(load("iris"), Setting(16), "mistakes", "iris/test/0", 3)
    assert first == third != second, "iris has two mistakes under clean labels"
    assert [words for _, words in (first, second)] == ["mistakes: 1 of 2", "mistakes: 2 of 2"]


def test_a_finder_that_finds_nothing_says_so():
    assert find_next(load("digits"), Setting(1), "digits/test/0", "votes disagree") == (
        None,
        "votes disagree: none under this setting",
    )


@pytest.mark.parametrize("finder", ["random", "no finder at all"])
def test_random_goes_to_a_test_item(finder, monkeypatch):
    monkeypatch.setattr(picking.random, "choice", lambda ids: ids[123])
    assert find_next(load("digits"), Setting(16), "digits/test/0", finder) == ("digits/test/123", "")


def follow(said, query="digits/test/0"):
    return picking.follow(load("digits"), Setting(16), query, said)


def offered(query="digits/test/0"):
    return picking.offer(load("digits"), query)


@pytest.fixture(autouse=True)
def session(monkeypatch):
    """What Streamlit keeps for a visitor, without a visitor."""
    for module in (picking, upload):
        monkeypatch.setattr(module.st, "session_state", {})


def test_the_board_says_by_id_or_by_finder_what_it_wants():
    assert follow({"query": "digits/test/7"}) == "digits/test/7"
    assert follow({"query": "digits/train/7"}) == "digits/train/7", "an entry can be asked about"
    assert follow({"k": "3"}) is None
    found = follow({"find": "most uncertain"})
    assert re.fullmatch(r"most uncertain: \d+ of 540", offered(found)["words"])
    assert offered("digits/test/1")["words"] == "", "it is said of the one that was found"


@pytest.mark.parametrize("wanted", ["digits/test/999999", "x" * 30_000, "upload/0"])
def test_an_id_that_nobody_has_gets_a_sentence_and_changes_nothing(wanted):
    assert follow({"query": wanted}) is None
    said = offered()["words"]
    assert said.startswith(f"There is no “{state.shorten(wanted)}”. It must be the id of a test item, such as digits")
    assert len(said) < 250
    assert follow({"query": "digits/test/1"}) == "digits/test/1"
    assert offered()["words"] == ""
