"""Labels flipped, neighbors left out and heads muted by hand: what follows is what a bank without them would say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn import LabelNoise
from attnknn.ballot import cast_votes
from attnknn.bank import search_exact
from attnknn.bank.entries import Observation
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.models.attention import HEADS
from tests.strategies import lattice_classifier, law, noises, temperatures

TOY = lattice_classifier()
IDS = [str(entry) for entry in TOY.entries.ids]
ITEMS = [str(item) for item in TOY.queries.ids] + IDS
flips = st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), max_size=8)
drops = st.lists(st.sampled_from(IDS), unique=True, max_size=12).map(tuple)
mutes = st.lists(st.sampled_from(list(HEADS)), unique=True, max_size=len(HEADS) - 1).map(tuple)
items, ks = st.sampled_from(ITEMS), st.integers(1, 8)


def decide(item, by_hand, k=7, noise=None, temperature=1.0):
    return decide_by_hand(TOY, TOY.ask([item]), by_hand, k, noise, temperature)


def assert_same_votes(votes, others):
    assert votes.keys() == others.keys()
    for name, vote in votes.items():
        np.testing.assert_allclose(vote.probabilities, others[name].probabilities, rtol=0, atol=1e-12, err_msg=name)


@law
@given(items, ks, noises, temperatures)
def test_who_changes_nothing_changes_nothing(item, k, noise, temperature):
    by_hand = decide(item, ByHand(), k, noise, temperature)
    expected = TOY.predict_items([item], k, noise, temperature)
    assert by_hand.to_dict() == expected.to_dict()


@law
@given(items, flips, noises, ks)
def test_a_flipped_label_is_a_label_of_the_bank(item, flips, noise, k):
    by_hand = decide(item, ByHand(flips=flips), k, noise)
    before = TOY.observe(noise)
    labels = before.labels.copy()
    for row, entry in enumerate(IDS):
        labels[row] = flips.get(entry, labels[row])
    expected = cast_votes(TOY.ask([item]), k, Observation(TOY.entries, labels, before), TOY.fitted)
    np.testing.assert_array_equal(by_hand.seen.labels, labels)
    assert_same_votes(by_hand.ballot.votes, expected.votes)
    np.testing.assert_allclose(by_hand.ballot.calibrated["attention"], expected.calibrated["attention"])


@law
@given(st.sampled_from(ITEMS[:12]), drops)
def test_who_is_left_out_is_not_found(item, dropped):
    asked = TOY.ask([item])
    kept = ~np.isin(TOY.entries.ids, dropped)
    expected = search_exact(TOY.entries.keys[kept], asked.keys, 7, TOY.entries.ids[kept])
    by_hand = decide(item, ByHand(dropped=dropped))
    found = by_hand.queries.pool.first(7)
    assert TOY.entries.ids[found.entries[0]].tolist() == TOY.entries.ids[kept][expected.entries[0]].tolist()
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-6)
    assert by_hand.k == 7
    assert_same_votes(by_hand.ballot.votes, TOY.decide(by_hand.queries, 7).ballot.votes)


def test_a_bank_in_which_few_are_left_is_asked_for_few():
    pool = TOY.entries.ids[TOY.ask([ITEMS[0]]).pool.entries[0]]
    by_hand = decide(ITEMS[0], ByHand(dropped=tuple(pool[2:])))
    assert by_hand.k == 2
    assert TOY.entries.ids[by_hand.neighbors[0]].tolist() == pool[:2].tolist()


@law
@given(items, mutes, noises, temperatures)
def test_heads_that_are_left_count_equally_and_say_what_they_said(item, muted, noise, temperature):
    everybody = TOY.predict_items([item], 7, noise, temperature)
    by_hand = decide(item, ByHand(muted=muted), 7, noise, temperature)
    heard = [h for h, head in enumerate(everybody.heads) if head not in muted]
    assert by_hand.heads == tuple(everybody.heads[h] for h in heard)
    for part in ("scores", "weights", "sink", "probabilities"):
        said, before = getattr(by_hand.ballot.heads, part), getattr(everybody.ballot.heads, part)
        np.testing.assert_allclose(said, before[:, heard], rtol=0, atol=1e-12)
    expected = everybody.ballot.heads.probabilities[:, heard].mean(axis=1)
    np.testing.assert_allclose(by_hand.ballot.votes["attention"].probabilities, expected, rtol=0, atol=1e-12)
    others = {name: vote for name, vote in everybody.ballot.votes.items() if not name.startswith("attention")}
    assert_same_votes({name: by_hand.ballot.votes[name] for name in others}, others)


@law
@given(items, mutes)
def test_class_averages_are_heard_by_the_heads_that_are_left(item, muted):
    votes = TOY.fitted
    only = [cast_by_averages(item, replace(votes, attention_averages=one)) for one in each_head(votes, muted)]
    by_hand = decide(item, ByHand(muted=muted)).ballot.votes["attention_averages"]
    np.testing.assert_allclose(by_hand.probabilities, np.mean([one.probabilities for one in only], axis=0), atol=1e-12)
    np.testing.assert_allclose(by_hand.averages, np.mean([one.averages for one in only], axis=0), atol=1e-12)


def each_head(votes, muted):
    attention = votes.attention_averages
    for h, head in enumerate(attention.heads):
        if head not in muted:
            rows = {name: getattr(attention, name)[h : h + 1] for name in ("coefficients", "sink", "seat", "pull")}
            yield replace(attention, heads=(head,), **rows)


def cast_by_averages(item, fitted):
    return cast_votes(TOY.ask([item]), 7, TOY.observe(LabelNoise()), fitted).votes["attention_averages"]


@law
@given(items, flips, drops, mutes)
def test_a_decision_by_hand_keeps_the_laws_of_a_vote(item, flips, dropped, muted):
    by_hand = decide(item, ByHand(flips, dropped, muted), 5, LabelNoise("pair", 0.3))
    np.testing.assert_allclose(by_hand.weights.sum(axis=2) + by_hand.sink, 1)
    for vote in by_hand.ballot.votes.values():
        np.testing.assert_allclose(vote.probabilities.sum(axis=1), 1)
    assert by_hand.to_dict()["query"] == item
    assert len(by_hand.neighbors_frame()) == by_hand.k * len(by_hand.heads)


@pytest.mark.parametrize(
    ("by_hand", "message"),
    [
        (ByHand(flips={"nobody": 0}), "labels are changed of entries of the bank, however: 'nobody'"),
        (ByHand(flips={IDS[0]: 3}), r"a label must be in 0\.\.2, however: 3"),
        (ByHand(flips={IDS[0]: -1}), r"a label must be in 0\.\.2, however: -1"),
        (ByHand(muted=tuple(HEADS)), "one head at least must be heard"),
    ],
)
def test_what_does_not_exist_cannot_be_changed(by_hand, message):
    with pytest.raises(ValueError, match=message):
        decide(ITEMS[0], by_hand)
