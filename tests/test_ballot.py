"""The ballot: every vote on the same neighbors, and the laws that hold for all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.ballot import Ballot, FittedVotes, cast_votes
from attnknn.calibration import calibrate, vote_facts
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.models.attention import HEADS
from attnknn.votes import COMPARED
from tests import oracles
from tests.strategies import lattice_classifier, law, noises, some_votes

SETTINGS = st.tuples(st.integers(1, 20), noises, st.sampled_from([0.1, 1.0, 5.0]))
OVER_NEIGHBORS = ("uniform", "distance", "edited", "attention")
SOFTENED = {"distance", "attention", "attention_averages"}


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


def cast(
    toy: AttnKNN, k: int, noise: LabelNoise, temperature: float = 1.0, fitted: FittedVotes | None = None
) -> Ballot:
    return cast_votes(toy.queries, k, toy.observe(noise), fitted or toy.fitted, temperature)


@law
@given(setting=SETTINGS)
def test_every_vote_is_a_distribution_before_and_after_calibration(toy: AttnKNN, setting):
    ballot = cast(toy, *setting)
    assert tuple(ballot.votes) == tuple(ballot.calibrated) == COMPARED
    for name in COMPARED:
        for p in (ballot.votes[name].probabilities, ballot.calibrated[name]):
            assert p.shape == (len(toy.queries), 3)
            assert (p >= 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)


@law
@given(setting=SETTINGS)
def test_shares_by_label_and_averages_and_the_sinks_prior_add_up_to_p(toy: AttnKNN, setting):
    """Law 1, for every vote that asks neighbors, counted one neighbor at a time."""
    k, noise, _ = setting
    ballot, seen = cast(toy, *setting), toy.observe(noise)
    prior = [list(seen.labels).count(c) / len(toy.entries) for c in range(3)]
    for name, vote in ballot.votes.items():
        if vote.weights is None:
            assert name in ("prototype", "baseline")
            continue
        pool = toy.queries.pool.entries if name == "edited" else toy.queries.pool.first(k).entries
        for b in range(len(toy.queries)):
            added = oracles.tally(vote.weights[b], seen.labels[pool[b]], 3)
            for c in range(3):
                added[c] += 0 if vote.averages is None else vote.averages[b, c]
                added[c] += 0 if vote.sink is None else vote.sink[b] * prior[c]
            np.testing.assert_allclose(added, vote.probabilities[b], atol=1e-6)


@law
@given(setting=SETTINGS)
def test_a_temperature_softens_only_votes_that_have_one(toy: AttnKNN, setting):
    k, noise, _ = setting
    one, other = cast(toy, k, noise, 1.0), cast(toy, k, noise, 0.2)
    for name in {*COMPARED} - SOFTENED:
        np.testing.assert_array_equal(one.votes[name].probabilities, other.votes[name].probabilities)
    if k > 1:
        for name in SOFTENED:
            assert (one.votes[name].probabilities != other.votes[name].probabilities).any()


@law
@given(noise=noises, temperature=st.sampled_from([0.1, 1.0, 5.0]))
def test_with_one_neighbor_and_no_sink_all_neighbor_votes_agree(toy: AttnKNN, noise: LabelNoise, temperature: float):
    """Law 5. Editing is the exception: it goes on looking for a neighbor that survives."""
    ballot = cast(toy, 1, noise, temperature, some_votes(has_sink=False))
    for name in ("distance", "attention"):
        np.testing.assert_array_equal(ballot.votes[name].probabilities, ballot.votes["uniform"].probabilities)


@law
@given(setting=SETTINGS)
def test_where_neighbors_are_unanimous_and_nothing_sinks_all_neighbor_votes_agree(toy: AttnKNN, setting):
    """Law 4: attention cannot win there, and cannot lose."""
    ballot = cast(toy, *setting, some_votes(has_sink=False))
    unanimous = (ballot.around.labels == ballot.around.labels[:, :1]).all(axis=1)
    for name in ("distance", "attention"):
        p = ballot.votes[name].probabilities
        np.testing.assert_allclose(p[unanimous], ballot.votes["uniform"].probabilities[unanimous], atol=1e-12)


@law
@given(setting=SETTINGS, rows=st.lists(st.integers(0, 11), min_size=1, max_size=5))
def test_a_query_is_judged_alone(toy: AttnKNN, setting, rows: list[int]):
    k, noise, temperature = setting
    together = cast(toy, *setting)
    some = cast_votes(toy.queries.take(np.array(rows)), k, toy.observe(noise), toy.fitted, temperature)
    for name in COMPARED:
        np.testing.assert_allclose(some.calibrated[name], together.calibrated[name][rows], atol=1e-12)


def test_calibration_is_that_of_each_votes_own_calibrator(toy: AttnKNN):
    ballot = cast(toy, 7, LabelNoise("pair", 0.3))
    for name in COMPARED:
        p = ballot.votes[name].probabilities
        expected = calibrate(p, vote_facts(ballot.around, p), toy.fitted.calibrators[name])
        np.testing.assert_array_equal(ballot.calibrated[name], expected)
        np.testing.assert_array_equal(expected.argmax(axis=1), p.argmax(axis=1))


def test_votes_without_a_calibrator_are_left_out_of_the_calibrated(toy: AttnKNN):
    ballot = cast(toy, 7, LabelNoise(), fitted=replace(toy.fitted, calibrators={}))
    assert ballot.calibrated == {}
    assert tuple(ballot.votes) == COMPARED


def test_fitted_numbers_survive_being_named_and_rebuilt(toy: AttnKNN):
    fitted = toy.fitted
    arrays = fitted.to_arrays()
    again = FittedVotes.from_arrays(fitted.attention.heads, fitted.attention.terms, arrays)
    assert again.to_arrays().keys() == arrays.keys()
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, arrays[name])
    assert again.calibrators == dict(fitted.calibrators)
    assert (again.distance, again.prototype) == (fitted.distance, fitted.prototype)
    for noise in (LabelNoise(), LabelNoise("pair", 0.4)):
        for name in COMPARED:
            one, two = cast(toy, 5, noise).calibrated[name], cast(toy, 5, noise, fitted=again).calibrated[name]
            np.testing.assert_array_equal(one, two)


def test_keys_are_gathered_only_for_heads_that_read_them(toy: AttnKNN):
    assert cast(toy, 5, LabelNoise()).around.keys is not None
    lean = some_votes(heads=tuple(head for head in HEADS if head != "familiar"))
    assert cast(toy, 5, LabelNoise(), fitted=lean).around.keys is None
