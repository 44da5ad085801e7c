"""Fitting the votes: where it starts, what it may not do, and that it does better than it started."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnknn.arrays import entropy, tally
from attnknn.bank import search_exact
from attnknn.bank.entries import observe, stack, surround
from attnknn.bundle import Queries
from attnknn.calibration import Calibrator, calibrate, fit_calibrator, vote_facts
from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig, LabelNoise
from attnknn.metrics import negative_log_likelihood
from attnknn.models.attention import HEADS, Attention, attend, terms_of
from attnknn.models.terms import TERMS, Surroundings
from attnknn.training.attention import fit_attention, fit_votes, fit_votes_on, noise_draws, noise_transition
from attnknn.training.layout import Layout, first_metric
from attnknn.votes import COMPARED, attention_vote, distance_weights
from tests.conftest import FAMILIAR, QUICK_ATTENTION
from tests.strategies import NO_SINK, draw_labels

SHARPNESS = 4.0
PULL = 6.0
ALL_HEADS = replace(QUICK_ATTENTION, heads=tuple(HEADS))
TRUSTED = replace(QUICK_ATTENTION, heads=("trusted",), rates=(0.4,), pair_rates=())


@pytest.fixture(scope="module")
def world() -> tuple[Surroundings, np.ndarray]:
    """300 queries in ten noisy classes: clear enough to learn from, torn enough to disagree about."""
    rng = np.random.default_rng(0)
    n, k, n_classes, dimension = 300, 8, 5, 6
    truth = rng.integers(0, n_classes, n)
    right = rng.random((n, k)) < 0.6
    labels = np.where(right, truth[:, None], rng.integers(0, n_classes, (n, k)))
    queries = rng.normal(size=(n, dimension))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    keys = queries[:, None] + 0.4 * rng.normal(size=(n, k, dimension))
    keys /= np.linalg.norm(keys, axis=2, keepdims=True)
    distances = np.linalg.norm(queries[:, None] - keys, axis=2)
    order = np.argsort(distances, axis=1)
    around = Surroundings(
        distances=np.take_along_axis(distances, order, axis=1),
        labels=labels,
        trust=np.where(labels == truth[:, None], 1.0, -1.0) + rng.normal(size=(n, k)),
        contrast=np.where(labels == truth[:, None], 0.3, -0.3) + 0.3 * rng.normal(size=(n, k)),
        average_distances=rng.uniform(0.5, 1.5, (n, n_classes)) - 0.4 * np.eye(n_classes)[truth],
        prior=np.full((n, n_classes), 1 / n_classes),
        queries=queries,
        keys=np.take_along_axis(keys, order[:, :, None], axis=1),
        dissent=np.repeat([0.2, 0.6], n // 2),
    )
    return around, truth


def start_of(world, config: AttentionConfig, pull: float | None = None) -> Attention:
    layout = Layout(config.heads, world[0], SHARPNESS, pull, False)
    fitted, _ = layout.unpack(torch.tensor(layout.start))
    return replace(fitted, **{name: array.numpy() for name, array in fitted.to_arrays().items()})


def loss(world, attention: Attention, config: AttentionConfig) -> float:
    """The loss of the fit, written again: NLL, with averages once calibrated, ridges, and the hinge on neighbors."""
    (around, truth), heads = world, attend(world[0], attention)
    p = heads.probabilities.mean(axis=1)
    facts = vote_facts(around, p)
    calibrator = fit_calibrator(p, facts, truth) if attention.has_averages else Calibrator(*np.zeros((2, 8)))
    if not attention.has_averages:  # a floor alone
        calibrator = replace(calibrator, sink=np.array([-50.0, *[0] * 7]))
    added = attention.coefficients[:, [term != "distance" for term in attention.terms]]
    listened = heads.weights / heads.weights.sum(axis=-1, keepdims=True)
    missing = np.maximum(config.minimum_effective - np.exp(entropy(listened)), 0)
    return (
        negative_log_likelihood(calibrate(p, facts, calibrator), truth)
        + 0.5 / len(truth) * (np.sum(calibrator.sink[1:] ** 2) + np.sum(calibrator.heat[1:] ** 2))
        + config.ridge * np.sum(added**2)
        + 1e-4 * np.sum(attention.sink[:, 1:] ** 2)
        + 0.1 * np.mean(missing**2)
    )


# ---- The start


@pytest.mark.parametrize("heads", [("nearest",), ("trusted", "typical"), tuple(HEADS)])
def test_the_fit_starts_at_the_tuned_distance_vote(world, heads: tuple[str, ...]):
    """Exactly so for θ of the distance; added terms start near zero, so that their gradient is there."""
    start = start_of(world, replace(ALL_HEADS, heads=heads))
    for h, head in enumerate(heads):
        for t, term in enumerate(start.terms):
            seen = term in HEADS[head].terms
            expected = 0 if not seen else SHARPNESS if term == "distance" else 0.05
            assert start.coefficients[h, t] == expected
    np.testing.assert_array_equal(start.sink, [[-4, 0, 0, 0]] * len(heads))
    bare = replace(
        start,
        coefficients=np.where(np.array(start.terms) == "distance", start.coefficients, 0.0),
        sink=np.tile(NO_SINK, (len(heads), 1)),
    )
    vote = attention_vote(attend(world[0], bare), 8)
    weights = distance_weights(world[0], SHARPNESS)
    np.testing.assert_allclose(vote.weights, weights, atol=1e-12)
    np.testing.assert_allclose(vote.probabilities, tally(weights, world[0].labels, 5), atol=1e-12)


def test_averages_start_as_tuned_prototypes_beside_the_neighbors(world):
    assert start_of(world, QUICK_ATTENTION).seat is None
    start = start_of(world, QUICK_ATTENTION, PULL)
    assert start.seat.tolist() == [[0.0, 0.0]] * 3
    assert start.pull.tolist() == [[PULL, 0.0]] * 3


def test_the_metric_starts_at_the_directions_in_which_neighbors_differ(world):
    around = world[0]
    stretched = replace(around, keys=around.keys + 5 * np.eye(6)[2] * np.random.default_rng(0).normal(size=(300, 8, 1)))
    metric = first_metric(stretched)
    assert abs(metric[0, 2]) / np.linalg.norm(metric[0]) > 0.99
    moved = (stretched.queries[:, None] - stretched.keys) @ metric.T
    assert 0.5 < np.mean(np.sum(moved**2, axis=-1)) < 1.5


# ---- What the fit may do


@pytest.mark.parametrize("pull", [None, PULL])
@pytest.mark.parametrize("config", [QUICK_ATTENTION, FAMILIAR], ids=["named", "familiar"])
def test_the_fit_improves_its_loss_and_keeps_its_promises(world, config: AttentionConfig, pull: float | None):
    fitted = fit_attention(*world, config, SHARPNESS, pull)
    start = start_of(world, config, pull)
    assert loss(world, fitted, config) < loss(world, start, config) - 0.01
    assert (fitted.heads, fitted.terms) == (config.heads, terms_of(config.heads))
    assert fitted.has_averages == (pull is not None)
    for array in fitted.to_arrays().values():
        assert isinstance(array, np.ndarray)
        assert array.dtype == np.float64
        assert np.isfinite(array).all()
    for h, head in enumerate(config.heads):
        for t, term in enumerate(fitted.terms):
            if term not in HEADS[head].terms:
                assert fitted.coefficients[h, t] == 0
            elif TERMS[term].reads_labels or term == "distance":
                assert fitted.coefficients[h, t] >= 0


def test_no_step_away_from_the_fit_lowers_the_loss(world):
    fitted = fit_attention(*world, QUICK_ATTENTION, SHARPNESS)
    best = loss(world, fitted, QUICK_ATTENTION)
    for h, t in np.argwhere(fitted.coefficients > 0):
        for step in (-0.05, 0.05):
            other = fitted.coefficients.copy()
            other[h, t] = max(other[h, t] + step, 0)
            assert loss(world, replace(fitted, coefficients=other), QUICK_ATTENTION) > best - 1e-6


def test_terms_that_read_labels_are_never_turned_against_the_labels(world):
    """A world in which the likelihood would love to: trusted, typical and agreeing neighbors are wrong."""
    around, truth = world
    liars = replace(around, trust=-around.trust, contrast=-around.contrast)
    fitted = fit_attention(liars, truth, QUICK_ATTENTION, SHARPNESS)
    for t, term in enumerate(fitted.terms):
        if TERMS[term].reads_labels:
            assert (fitted.coefficients[:, t] >= 0).all()
    assert fitted.coefficients[1, fitted.terms.index("trust")] == 0
    assert fitted.coefficients[2, fitted.terms.index("prototype")] == 0


def test_what_helps_is_used(world):
    fitted = fit_attention(*world, QUICK_ATTENTION, SHARPNESS)
    assert fitted.coefficients[1, fitted.terms.index("trust")] > 0.5
    assert fitted.coefficients[2, fitted.terms.index("prototype")] > 0.5


@pytest.mark.parametrize("config", [QUICK_ATTENTION, FAMILIAR], ids=["named", "familiar"])
def test_the_same_queries_give_the_same_numbers(world, config: AttentionConfig):
    one, two = (fit_attention(*world, config, SHARPNESS, PULL).to_arrays() for _ in range(2))
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])


def test_a_strong_ridge_keeps_added_terms_at_zero(world):
    fitted = fit_attention(*world, replace(QUICK_ATTENTION, ridge=1e3), SHARPNESS)
    added = [t for t, term in enumerate(fitted.terms) if term != "distance"]
    np.testing.assert_allclose(fitted.coefficients[:, added], 0, atol=1e-3)


def test_the_hinge_keeps_neighbors_listened_to(world):
    def least(minimum: float) -> float:
        config = replace(QUICK_ATTENTION, minimum_effective=minimum, heads=("trusted",))
        heads = attend(world[0], fit_attention(*world, config, SHARPNESS))
        return float(np.mean(np.exp(entropy(heads.weights / heads.weights.sum(axis=-1, keepdims=True)))))

    assert least(7.0) > least(1.0) + 0.5


def test_unanimous_neighbors_teach_nothing(world):
    """Law 4 in the fit: every neighbor right, nothing to gain; added coefficients only shrink by the ridge."""
    around, truth = world
    easy = replace(around, labels=np.repeat(truth[:, None], 8, axis=1))
    fitted = fit_attention(easy, truth, replace(QUICK_ATTENTION, minimum_effective=1.0, heads=("trusted",)), 3.0)
    np.testing.assert_allclose(fitted.coefficients, [[3.0, 0, 0]], atol=0.06)


# ---- Draws


def test_the_fit_sees_every_bearable_rate_and_each_in_fresh_draws():
    config = AttentionConfig(rates=(0.0, 0.4, 0.8), pair_rates=(0.4,), draws=3)
    ten = [(noise.kind, noise.rate) for noise in noise_draws(config, 10, seed=0)]
    assert ten == [("symmetric", 0.0)] * 3 + [("symmetric", 0.4)] * 3 + [("symmetric", 0.8)] * 3 + [("pair", 0.4)] * 3
    two = {noise.rate for noise in noise_draws(config, 2, seed=0) if noise.kind == "symmetric"}
    assert two == {0.0, 0.4}
    seeds = [{noise.seed for noise in noise_draws(config, 10, seed)} for seed in (0, 1)]
    assert len(seeds[0]) == 3
    assert seeds[0].isdisjoint(seeds[1])
    assert min(seeds[0]) > 9999


# ---- Wrong labels to fit on


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
def test_a_fit_that_knows_how_labels_were_made_wrong_does_not_learn_the_noise(world, kind):
    """The same queries, 40 % of their labels wrong: the true ones are likelier when that is allowed for."""
    around, truth = world
    transition = 0.6 * np.eye(5) + 0.4 * (
        np.full((5, 5), 0.2) if kind == "symmetric" else np.roll(np.eye(5), 1, axis=1)
    )
    given = draw_labels(transition[truth], np.random.default_rng(5))
    config = replace(QUICK_ATTENTION, heads=("trusted",))

    def loss_of_truth(known: np.ndarray | None) -> float:
        p = attend(around, fit_attention(around, given, config, SHARPNESS, None, known)).probabilities.mean(axis=1)
        facts = vote_facts(around, p)
        return negative_log_likelihood(calibrate(p, facts, fit_calibrator(p, facts, given, transition=known)), truth)

    assert loss_of_truth(transition) < loss_of_truth(None) - 0.02


def test_how_labels_were_made_wrong_is_told_from_queries_that_surely_belong_to_a_class(iris: AttnKNN):
    queries, entries = held_out(iris), iris.entries
    around = surround(queries.keys, queries.pool.first(2), observe(entries, LabelNoise()), queries.groups)
    nearest, (first, second) = around.average_distances.argmin(axis=1), np.sort(around.average_distances)[:, :2].T ** 2
    leads = second - first  # of unit vectors, squared distances differ as similarities do, twice as much
    shifted = replace(queries, labels=((nearest + (np.arange(len(nearest)) % 3 == 0)) % 3).astype(np.int32))
    medians = np.array([np.median(leads[nearest == label]) for label in range(3)])
    is_sure = leads >= medians[nearest] - 1e-6
    counts = np.zeros((3, 3))
    np.add.at(counts, (nearest[is_sure], shifted.labels[is_sure]), 1)
    share = np.mean((nearest != shifted.labels)[is_sure])
    alike = (1 - share) * np.eye(3) + share * (1 - np.eye(3)) / 2
    expected = (counts + 3 * alike) / (counts.sum(axis=1, keepdims=True) + 3)
    found = noise_transition(shifted, entries)
    np.testing.assert_allclose(found, expected)
    assert found[0, 1] > found[0, 2]
    with pytest.raises(ValueError, match="those of queries with labels"):
        noise_transition(replace(queries, labels=None), entries)


# ---- Every vote


def test_queries_in_folds_with_one_bank_are_fitted_like_all_at_once(iris: AttnKNN):
    """The order of the queries changes, and with it only rounding; where an item lies in a fold does not matter."""
    queries = held_out(iris, slice(0, 30))
    parts = [queries.take(np.arange(start, 30, 2)) for start in (0, 1)]
    whole = fit_votes(queries, iris.entries, TRUSTED, seed=0)
    folded = fit_votes_on([(part, iris.entries) for part in parts], TRUSTED, seed=0)
    assert folded.distance == pytest.approx(whole.distance, rel=1e-2)
    np.testing.assert_allclose(folded.attention.coefficients, whole.attention.coefficients, atol=0.05)
    one, two = (
        AttnKNN(iris.bundle, fitted, iris.card, {}).predict_items().ballot.calibrated["attention"]
        for fitted in (whole, folded)
    )
    np.testing.assert_allclose(one, two, atol=5e-3)


def held_out(iris: AttnKNN, rows: slice = slice(0, 40)) -> Queries:
    """Test items stand in for held-out ones: all that matters here is that none is an entry."""
    return iris.queries.take(np.arange(len(iris.queries))[rows])


def test_every_vote_is_fitted_the_same_way_each_time(iris: AttnKNN):
    one, two = (fit_votes(held_out(iris, slice(0, 20)), iris.entries, TRUSTED, seed=0) for _ in range(2))
    assert tuple(one.calibrators) == COMPARED
    assert one.to_arrays().keys() == two.to_arrays().keys()
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, two.to_arrays()[name])


def test_the_tuned_sharpness_is_the_best_of_many(iris: AttnKNN):
    """A search over one number, against trying a grid; the fit saw these very draws."""
    config, queries = replace(QUICK_ATTENTION, heads=("nearest",), rates=(0.4,)), held_out(iris)
    fitted = fit_votes(queries, iris.entries, config, seed=0)
    draws = [observe(iris.entries, noise) for noise in noise_draws(config, 3, seed=0)]
    around = stack([surround(queries.keys, queries.pool.first(8), seen) for seen in draws])
    truth = np.tile(queries.labels, len(draws))

    def calibrated_loss(sharpness: float) -> float:
        p = tally(distance_weights(around, sharpness), around.labels, 3)
        facts = vote_facts(around, p)
        return negative_log_likelihood(calibrate(p, facts, fit_calibrator(p, facts, truth)), truth)

    found = calibrated_loss(fitted.distance)
    assert 0.1 <= fitted.distance <= 100
    assert found <= min(calibrated_loss(sharpness) for sharpness in np.geomspace(0.1, 100, 15)) + 2e-3


def test_votes_are_fitted_on_queries_with_labels(iris: AttnKNN):
    with pytest.raises(ValueError, match="queries with labels"):
        fit_votes(replace(held_out(iris), labels=None), iris.entries, QUICK_ATTENTION, seed=0)


def test_heads_that_read_keys_can_be_fitted_and_used(iris: AttnKNN):
    config = replace(TRUSTED, heads=("familiar",))
    fitted = fit_votes(held_out(iris, slice(0, 20)), iris.entries, config, seed=0)
    assert fitted.attention.metric.shape[1] == iris.entries.keys.shape[1]
    other = AttnKNN(iris.bundle, fitted, iris.card, {})
    prediction = other.predict_items(noise=LabelNoise("symmetric", 0.3))
    np.testing.assert_allclose(prediction.weights.sum(axis=-1) + prediction.sink, 1, atol=1e-9)
    found = search_exact(iris.entries.keys, iris.queries.keys, 8, iris.entries.ids)
    np.testing.assert_array_equal(prediction.neighbors, found.entries)
