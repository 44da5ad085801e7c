"""Votes: each against its slow twin in every library, and against scikit-learn on real digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.neighbors import KNeighborsClassifier

from attnknn.arrays import tally
from attnknn.bank import search_exact
from attnknn.data import load_dataset
from attnknn.models.attention import attend
from attnknn.models.terms import Surroundings
from attnknn.votes import (
    COMPARED,
    TITLES,
    attention_vote,
    distance_weights,
    edited_weights,
    prototype_probabilities,
    uniform_weights,
)
from tests import oracles
from tests.conftest import LIBRARIES
from tests.strategies import attentions, convert, law, surroundings, temperatures, unit

SHARPNESS = st.floats(0, 50)


def around_of(distances: np.ndarray) -> Surroundings:
    k = distances.shape[1]
    return Surroundings(distances, np.zeros((1, k), int), *[np.zeros((1, k))] * 2, np.ones((1, 2)), np.ones((1, 2)) / 2)


# ---- Twins and libraries


@law
@given(surroundings(), SHARPNESS, temperatures)
def test_distance_weights_equal_their_slow_twin_in_every_library(around: Surroundings, sharpness: float, temperature):
    expected = [
        oracles.softmax([sharpness * x for x in oracles.term("distance", around, b)], temperature)
        for b in range(len(around.distances))
    ]
    for asarray in LIBRARIES.values():
        got = np.asarray(distance_weights(convert(around, asarray), sharpness, temperature))
        np.testing.assert_allclose(got, expected, atol=1e-9)
        np.testing.assert_allclose(got.sum(axis=1), 1, atol=1e-12)


@law
@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.booleans()), st.data())
def test_edited_weights_equal_their_slow_twin_in_every_library(keeps: np.ndarray, data: st.DataObject):
    k = data.draw(st.integers(1, keeps.shape[1]))
    expected = [oracles.edited(row, k) for row in keeps]
    for asarray in LIBRARIES.values():
        np.testing.assert_allclose(np.asarray(edited_weights(asarray(keeps), k)), expected, atol=1e-12)


@law
@given(surroundings(), st.integers(0, 99))
def test_a_tally_equals_its_slow_twin_in_every_library(around: Surroundings, seed: int):
    weights = np.random.default_rng(seed).dirichlet(np.ones(around.distances.shape[1]), len(around.distances))
    expected = [oracles.tally(w, y, around.n_classes) for w, y in zip(weights, around.labels, strict=True)]
    for asarray in LIBRARIES.values():
        got = np.asarray(tally(asarray(weights), asarray(around.labels), around.n_classes))
        np.testing.assert_allclose(got, expected, atol=1e-12)


@law
@given(surroundings(), SHARPNESS)
def test_the_prototype_vote_equals_its_slow_twin_in_every_library(around: Surroundings, sharpness: float):
    expected = [oracles.nearest_prototype(row, sharpness) for row in around.average_distances]
    for asarray in LIBRARIES.values():
        got = np.asarray(prototype_probabilities(asarray(around.average_distances), sharpness))
        np.testing.assert_allclose(got, expected, atol=1e-9)
        assert (got.argmax(axis=1) == around.average_distances.argmin(axis=1)).all() or sharpness < 1e-6


def test_uniform_weights_are_one_kth_in_every_library(asarray):
    np.testing.assert_array_equal(np.asarray(uniform_weights(asarray(np.zeros((2, 4))))), np.full((2, 4), 0.25))


@law
@given(surroundings(), attentions())
def test_the_attention_vote_is_the_mean_of_its_heads_in_every_library(around: Surroundings, attention):
    heads, k = attend(around, attention), around.distances.shape[1]
    for asarray in LIBRARIES.values():
        vote = attention_vote(convert(heads, asarray), k)
        np.testing.assert_allclose(np.asarray(vote.probabilities), heads.probabilities.mean(axis=1), atol=1e-12)
        np.testing.assert_allclose(np.asarray(vote.weights), heads.weights[:, :, :k].mean(axis=1), atol=1e-12)
        np.testing.assert_allclose(np.asarray(vote.sink), heads.sink.mean(axis=1), atol=1e-12)
        assert (vote.averages is not None) == attention.has_averages


@law
@given(surroundings(), attentions())
def test_contributions_of_the_attention_vote_add_up_to_p(around: Surroundings, attention):
    """Law 1: shares by label, plus the averages' shares, plus the sink's mass spread over the prior."""
    vote = attention_vote(attend(around, attention), around.distances.shape[1])
    added = tally(vote.weights, around.labels, around.n_classes) + vote.sink[:, None] * around.prior
    added += vote.averages if vote.averages is not None else 0
    np.testing.assert_allclose(added, vote.probabilities, atol=1e-6)
    np.testing.assert_allclose(vote.probabilities.sum(axis=1), 1, atol=1e-9)


# ---- Laws of the distance vote


@law
@given(surroundings(), st.floats(0.1, 50))
def test_a_hot_distance_vote_is_uniform(around: Surroundings, sharpness: float):
    """Law 5; a sharpness of zero is the same."""
    for weights in (distance_weights(around, sharpness, 1e12), distance_weights(around, 0.0)):
        np.testing.assert_allclose(weights, uniform_weights(around.distances), atol=1e-9)


@pytest.mark.parametrize("temperature", [1e-9, 1e-300, 5e-324])
@law
@given(around=surroundings(), sharpness=st.floats(0.1, 50))
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_cold_distance_vote_belongs_to_the_nearest(temperature: float, around: Surroundings, sharpness: float):
    """Law 5, down to the smallest float, or to the several that are equally near."""
    weights = distance_weights(around, sharpness, temperature)
    nearest = around.distances <= around.distances[:, :1] + 1e-12
    clear = (nearest | (around.distances > around.distances[:, :1] + 1e-6)).all(axis=1)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(np.where(nearest, weights, 0).sum(axis=1)[clear], 1, atol=1e-9)


@law
@given(surroundings(), st.floats(0.1, 20))
def test_a_nearer_neighbor_never_has_less_say(around: Surroundings, sharpness: float):
    assert (np.diff(distance_weights(around, sharpness), axis=1) <= 1e-12).all()


@law
@given(surroundings(), st.floats(0.1, 20), st.floats(0.1, 10))
def test_the_unit_of_distance_does_not_matter(around: Surroundings, sharpness: float, unit_of_length: float):
    scaled = Surroundings(around.distances * unit_of_length, *[around.labels] * 3, around.prior, around.prior)
    np.testing.assert_allclose(
        distance_weights(around, sharpness), distance_weights(scaled, sharpness), atol=1e-9, rtol=1e-6
    )


def test_the_distance_vote_refuses_a_temperature_of_zero():
    for temperature in (0, -2.0, float("nan")):
        with pytest.raises(ValueError, match="temperature must be positive"):
            distance_weights(around_of(np.ones((1, 2))), 1.0, temperature)


# ---- Editing


def test_editing_asks_the_next_survivor_and_falls_back_on_everyone():
    keeps = np.array([[False, True, True, True], [False, False, False, True], [False] * 4])
    np.testing.assert_array_equal(edited_weights(keeps, 2), [[0, 0.5, 0.5, 0], [0, 0, 0, 1], [0.5, 0.5, 0, 0]])


# ---- An outside witness


@pytest.fixture(scope="module")
def digits():
    """Pixels of the digits as unit vectors: 1,257 entries and 540 queries of real data."""
    dataset = load_dataset("digits")
    keys = unit(dataset.inputs.reshape(len(dataset.inputs), -1).astype(np.float64))
    train, test = dataset.where("train"), dataset.where("test")
    found = search_exact(keys[train], keys[test], 16, dataset.ids[train])
    return keys[train], dataset.labels[train], keys[test], found


def witness(digits, weights) -> np.ndarray:
    entries, labels, queries, found = digits
    return KNeighborsClassifier(found.k, weights=weights, algorithm="brute").fit(entries, labels).predict_proba(queries)


def test_scikit_learn_casts_the_same_uniform_vote(digits):
    _, labels, _, found = digits
    ours = tally(uniform_weights(found.distances), labels[found.entries], 10)
    np.testing.assert_allclose(ours, witness(digits, "uniform"), atol=1e-12)


@pytest.mark.parametrize("sharpness", [1.0, 6.0, 30.0])
def test_scikit_learn_casts_the_same_distance_vote(digits, sharpness: float):
    def kernel(distances: np.ndarray) -> np.ndarray:
        return np.exp(-sharpness * distances / distances.mean(axis=1, keepdims=True))

    _, labels, _, found = digits
    ours = tally(distance_weights(around_of(found.distances), sharpness), labels[found.entries], 10)
    np.testing.assert_allclose(ours, witness(digits, kernel), atol=1e-4)


def test_every_compared_vote_has_a_title():
    assert {*TITLES} == {*COMPARED}
    assert len({*TITLES.values()}) == len(COMPARED)
