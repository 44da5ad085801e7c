"""Attention over neighbors: the laws of one query, in every array library and against slow twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from attnknn.models.attention import (
    HEADS,
    Attention,
    attend,
    explain_scores,
    head_disagreement,
    query_facts,
    score_averages,
    sigmoid,
    terms_of,
)
from attnknn.models.terms import TERMS, Surroundings
from attnknn.votes import prototype_probabilities
from tests import oracles
from tests.conftest import LIBRARIES
from tests.strategies import NO_SINK, attentions, convert, law, some_attention, surroundings, temperatures

FOUR_TERMS = ("distance", "trust", "agreement", "prototype")


def plain(coefficients: list[float], sink: tuple[float, ...] = NO_SINK) -> Attention:
    """One head that sees all that is needed for a hand-made score."""
    return Attention(("trusted",), FOUR_TERMS, np.array([coefficients]), np.array([sink]))


# ---- Twins and libraries


@law
@given(surroundings(), attentions(), temperatures)
def test_head_votes_equal_their_slow_twin_in_every_library(around: Surroundings, attention: Attention, temperature):
    """Law 9: one function, three libraries, and loops that anyone can check."""
    n_queries, n_heads = len(around.distances), len(attention.heads)
    expected = [
        [oracles.head_vote(around, attention, b, h, temperature) for h in range(n_heads)] for b in range(n_queries)
    ]
    for asarray in LIBRARIES.values():
        heads = attend(convert(around, asarray), convert(attention, asarray), temperature)
        for place, name in enumerate(("scores", "weights", "sink", "probabilities")):
            twin = [[vote[place] for vote in row] for row in expected]
            np.testing.assert_allclose(np.asarray(getattr(heads, name)), twin, atol=1e-9, err_msg=name)


@law
@given(surroundings(), attentions(has_averages=False))
def test_explained_terms_add_up_to_the_score_in_every_library(around: Surroundings, attention: Attention):
    """Law 1 and law 9: nothing of a score is hidden."""
    expected = [
        [
            [
                np.array(oracles.term(name, around, b, attention.metric)) * attention.coefficients[h, t]
                for t, name in enumerate(attention.terms)
            ]
            for h in range(len(attention.heads))
        ]
        for b in range(len(around.distances))
    ]
    for asarray in LIBRARIES.values():
        world, fitted = convert(around, asarray), convert(attention, asarray)
        parts = np.asarray(explain_scores(world, fitted))
        np.testing.assert_allclose(parts, expected, atol=1e-9)
        np.testing.assert_allclose(parts.sum(axis=2), np.asarray(attend(world, fitted).scores), atol=1e-6)


@law
@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=3, max_dims=3, max_side=5), elements=st.floats(0.01, 1)))
def test_disagreement_of_heads_equals_its_slow_twin_in_every_library(weights):
    expected = [oracles.disagreement(heads) for heads in weights]
    for asarray in LIBRARIES.values():
        np.testing.assert_allclose(np.asarray(head_disagreement(asarray(weights))), expected, atol=1e-9)


def test_disagreement_runs_from_alike_to_nothing_in_common():
    alike, apart = np.array([[[0.2, 0.6], [0.1, 0.3]]]), np.array([[[0.4, 0.0], [0.0, 0.9]]])
    np.testing.assert_allclose(head_disagreement(np.concatenate([alike, apart])), [0, 1], atol=1e-12)
    assert head_disagreement(alike[:, :1]).tolist() == [0.0]


# ---- Laws


@law
@given(surroundings(), attentions(), temperatures)
def test_weights_and_sink_sum_to_one_and_so_does_every_vote(around: Surroundings, attention: Attention, temperature):
    """Law 1."""
    heads = attend(around, attention, temperature)
    np.testing.assert_allclose(heads.weights.sum(axis=-1) + heads.sink, 1, atol=1e-9)
    np.testing.assert_allclose(heads.probabilities.sum(axis=-1), 1, atol=1e-9)
    for array in (heads.weights, heads.sink, heads.probabilities):
        assert (array >= 0).all()


@law
@given(surroundings(), attentions())
def test_contributions_add_up_to_p(around: Surroundings, attention: Attention):
    """Law 1: neighbor j adds its weight to its class, an average to its own, the sink its prior."""
    heads = attend(around, attention)
    n_queries, n_heads, k = (*heads.sink.shape, around.distances.shape[1])
    for b, h in np.ndindex(n_queries, n_heads):
        added = np.zeros(around.n_classes)
        for j in range(k):
            added[around.labels[b, j]] += heads.weights[b, h, j]
        added += heads.weights[b, h, k:] if attention.has_averages else 0
        added += heads.sink[b, h] * around.prior[b]
        np.testing.assert_allclose(added, heads.probabilities[b, h], atol=1e-6)


@law
@given(surroundings(), attentions(has_averages=False, has_sink=False), temperatures, st.integers(0, 4))
def test_unanimous_neighbors_leave_nothing_to_decide(around: Surroundings, attention: Attention, temperature, c):
    """Law 4: p is the same whatever the numbers, so no step of theirs changes the loss."""
    c = c % around.n_classes
    around = convert(replace(around, labels=np.full_like(around.labels, c)), torch.asarray)
    coefficients = torch.tensor(attention.coefficients, requires_grad=True)
    sink = torch.tensor(attention.sink, requires_grad=True)
    moving = replace(convert(attention, torch.asarray), coefficients=coefficients, sink=sink)
    p = attend(around, moving, temperature).probabilities
    np.testing.assert_allclose(p.detach()[:, :, c], 1, atol=1e-12)
    gradients = torch.autograd.grad(-torch.log(p[:, :, c]).sum(), (coefficients, sink))
    assert max(float(gradient.abs().max()) for gradient in gradients) < 1e-12


def test_neighbors_that_differ_leave_something_to_decide():
    """The other side of law 4: with two labels the same gradient is there."""
    around = Surroundings(
        *(np.array([[0.1, 0.4, 0.5]]), np.array([[0, 1, 0]])),
        *(np.array([[1.0, -2.0, 0.5]]), np.array([[0.3, -0.1, 0.2]])),
        *(np.array([[0.4, 0.6]]), np.array([[0.5, 0.5]])),
    )
    coefficients = torch.tensor([[2.0, 0.5, 0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    moving = replace(convert(plain([0] * 4), torch.asarray), coefficients=coefficients)
    p = attend(convert(around, torch.asarray), moving).probabilities
    (gradient,) = torch.autograd.grad(-torch.log(p[0, 0, 0]), coefficients)
    assert (gradient.abs() > 1e-3).all()


@law
@given(surroundings(), attentions())
def test_a_hot_vote_is_uniform(around: Surroundings, attention: Attention):
    """Law 5, temperature to infinity."""
    heads = attend(around, attention, 1e12)
    n_voters = heads.weights.shape[-1]
    np.testing.assert_allclose(heads.weights, (1 - heads.sink[:, :, None]) / n_voters * np.ones(n_voters), atol=1e-9)


@pytest.mark.parametrize("temperature", [1e-9, 1e-300, 5e-324])
@law
@given(around=surroundings(), attention=attentions())
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_cold_vote_belongs_to_the_highest_score(temperature: float, around: Surroundings, attention: Attention):
    """Law 5, temperature to zero, down to the smallest float."""
    heads = attend(around, attention, temperature)
    top = heads.scores.max(axis=-1, keepdims=True)
    close = heads.scores > top - 1e-6
    clear = close.sum(axis=-1) == 1
    shares = np.where(close, 1 - heads.sink[:, :, None], 0)
    np.testing.assert_allclose(heads.weights[clear], shares[clear], atol=1e-9)
    np.testing.assert_allclose(heads.weights.sum(axis=-1) + heads.sink, 1, atol=1e-9)


@law
@given(surroundings(k=1), attentions(has_averages=False, has_sink=False), temperatures)
def test_a_single_neighbor_decides_alone(around: Surroundings, attention: Attention, temperature):
    """Law 5, k = 1."""
    heads = attend(around, attention, temperature)
    assert (heads.weights == 1).all()
    np.testing.assert_array_equal(
        heads.probabilities, np.eye(around.n_classes)[around.labels][:, [0] * len(heads.sink[0])]
    )


@law
@given(surroundings(), attentions(), st.randoms(use_true_random=False))
def test_heads_count_in_any_order(around: Surroundings, attention: Attention, random):
    order = np.array(random.sample(range(len(attention.heads)), len(attention.heads)))
    other = replace(
        attention,
        heads=tuple(attention.heads[h] for h in order),
        coefficients=attention.coefficients[order],
        sink=attention.sink[order],
        seat=None if attention.seat is None else attention.seat[order],
        pull=None if attention.pull is None else attention.pull[order],
    )
    before, after = attend(around, attention), attend(around, other)
    np.testing.assert_allclose(before.probabilities[:, order], after.probabilities, atol=1e-12)


@law
@given(surroundings(), attentions(has_averages=True, has_sink=False), st.floats(0, 30))
def test_with_a_high_seat_averages_vote_as_the_nearest_prototype(around: Surroundings, attention: Attention, s: float):
    shape = attention.seat.shape
    high = replace(attention, seat=np.full(shape, 1e4), pull=np.broadcast_to([s, 0.0], shape))
    expected = prototype_probabilities(around.average_distances, s)
    for h in range(len(attention.heads)):
        np.testing.assert_allclose(attend(around, high).probabilities[:, h], expected, atol=1e-9)


# ---- Parts


def test_heads_see_terms_that_exist_and_all_start_from_the_distance():
    for head in HEADS.values():
        assert {*head.terms} <= {*TERMS}
        assert head.terms[0] == "distance"
    assert {term for head in HEADS.values() for term in head.terms} == {*TERMS}
    assert terms_of(["trusted", "nearest"]) == ("distance", "trust", "agreement", "rank")


@law
@given(surroundings(), st.integers(0, 99))
def test_facts_of_a_query_equal_their_slow_twin(around: Surroundings, seed: int):
    rng, (n_queries, n_classes) = np.random.default_rng(seed), around.prior.shape
    per_head = rng.dirichlet(np.ones(n_classes), (n_queries, 2))
    for asarray in LIBRARIES.values():
        found = np.asarray(query_facts(asarray(around.distances), asarray(per_head)))
        alone = np.asarray(query_facts(asarray(around.distances), asarray(per_head[:, 0])))
        np.testing.assert_array_equal(alone, found[:, 0])
        for b, h in np.ndindex(n_queries, 2):
            np.testing.assert_allclose(found[b, h], oracles.facts(around.distances[b], per_head[b, h]), atol=1e-12)


def test_the_sigmoid_never_overflows():
    logits = np.array([-1e300, -800.0, -3.0, 0.0, 2.5, 800.0, np.inf])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(sigmoid(logits), special.expit(logits), atol=1e-15)


@pytest.mark.parametrize("has_averages", [False, True])
def test_what_is_taken_apart_is_put_together_again(has_averages: bool):
    attention = some_attention(np.random.default_rng(0), ["trusted", "familiar"], has_averages)
    again = Attention.from_arrays(list(attention.heads), list(attention.terms), attention.to_arrays())
    assert (again.heads, again.terms) == (attention.heads, attention.terms)
    assert {**again.to_arrays()}.keys() == attention.to_arrays().keys()
    assert all(array is attention.to_arrays()[name] for name, array in again.to_arrays().items())
    assert again.has_averages == has_averages


def test_numbers_that_do_not_fit_their_names_are_refused():
    attention = some_attention(np.random.default_rng(0), ["trusted", "typical"], has_averages=True)
    heads, terms, arrays = attention.heads, attention.terms, attention.to_arrays()
    for wrong in (
        {"coefficients": np.ones((2, 9))},
        {"sink": np.ones((2, 3))},
        {"seat": np.ones(2)},
        {"pull": np.ones((2, 1))},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be of shape"):
            Attention.from_arrays(heads, terms, arrays | wrong)
    with pytest.raises(ValueError, match="seat and pull come together"):
        Attention.from_arrays(heads, terms, {name: array for name, array in arrays.items() if name != "pull"})
    with pytest.raises(ValueError, match=r"\['wise'\] are not"):
        Attention.from_arrays(("trusted", "wise"), terms, arrays)
    with pytest.raises(ValueError, match=r"\['mood'\] are not"):
        Attention.from_arrays(heads, (*terms[:-1], "mood"), arrays)


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_a_temperature_that_is_not_positive_is_our_own_mistake(temperature: float):
    around = Surroundings(np.ones((1, 2)), np.zeros((1, 2), int), *[np.zeros((1, 2))] * 4)
    with pytest.raises(ValueError, match="temperature must be positive"):
        attend(around, plain([1, 0, 0, 0]), temperature)


def test_averages_without_a_seat_are_our_own_mistake():
    around = Surroundings(np.ones((1, 2)), np.zeros((1, 2), int), *[np.zeros((1, 2))] * 4)
    with pytest.raises(ValueError, match="need a seat, a pull and the dissent"):
        score_averages(around, plain([1, 0, 0, 0]))
