"""Variants of the votes: each against what the plain votes say one by one, and views against training's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnknn.calibration import vote_facts
from attnknn.classifier import AttnKNN, load
from attnknn.config import EmbedderConfig, LabelNoise
from attnknn.evaluation import protocol
from attnknn.evaluation.gains import FittedVariant, compare_variants, fit_variant
from attnknn.evaluation.variants import (
    ENSEMBLE,
    MARGINS,
    adaptive,
    cast_variant,
    choose_k,
    fixed,
    list_variants,
    viewed,
)
from attnknn.evaluation.views import ask_views, make_views
from attnknn.intervals import paired_interval
from attnknn.models.embedders import augment
from attnknn.models.image_network import shift_and_flip
from attnknn.training.attention import noise_draws
from attnknn.training.run import held_out_queries
from attnknn.votes import COMPARED
from tests.strategies import lattice_classifier, law

NOISE = LabelNoise("symmetric", 0.4, 3)
KS = (2, 5, 11)


@pytest.fixture(scope="module")
def toy() -> AttnKNN:
    return lattice_classifier()


# ---- A k of its own


@law
@given(st.integers(2, 5), st.integers(1, 12), st.sampled_from([0.3, 0.7, 1.0, 2.0]), st.integers(0, 2**32))
def test_a_chosen_k_is_the_first_at_which_a_class_stands_out(n_classes: int, pool: int, margin: float, seed: int):
    labels = np.random.default_rng(seed).integers(0, n_classes, (6, pool))
    for row, chosen in zip(labels.tolist(), choose_k(labels, n_classes, margin), strict=True):
        expected = pool
        for k in range(pool, 0, -1):
            most = max(row[:k].count(c) for c in range(n_classes))
            if most / k - 1 / n_classes > margin / k**0.5:
                expected = k
        assert chosen == expected


def test_torn_neighborhoods_are_asked_longer_than_unanimous_ones():
    labels = np.tile(np.array([[0] * 64, [0, 1] * 32, [0, 0, 1, 0] * 16]), (1, 1))
    unanimous, torn, doubtful = choose_k(labels, 10, 2.0)
    assert unanimous == 5  # 0.9 > 2 / sqrt(k)
    assert unanimous < doubtful < torn
    chosen = [choose_k(labels, 10, margin) for margin in MARGINS]
    assert (np.diff(chosen, axis=0) >= 0).all()


# ---- What is averaged


def plain(classifier: AttnKNN, k: int, noise: LabelNoise = NOISE):
    return classifier.decide(classifier.queries, k, noise)


def test_one_k_for_all_is_the_plain_vote(toy: AttnKNN):
    said, prediction = cast_variant(toy, fixed(5), [toy.queries], NOISE), plain(toy, 5)
    assert tuple(said) == COMPARED
    for vote in COMPARED:
        p = prediction.ballot.votes[vote].probabilities
        np.testing.assert_array_equal(said[vote].probabilities, p)
        np.testing.assert_allclose(said[vote].facts, vote_facts(prediction.ballot.around, p), atol=1e-15)
        assert (said[vote].k == 5).all()
        effective = prediction.effective_neighbors(vote)
        expected = np.full(len(p), np.nan) if effective is None else effective
        np.testing.assert_array_equal(said[vote].effective_neighbors, expected)


@pytest.mark.parametrize("vote", COMPARED)
def test_an_ensemble_is_the_mean_over_k(toy: AttnKNN, vote: str):
    said, predictions = cast_variant(toy, fixed(*KS), [toy.queries], NOISE, (vote,))[vote], [plain(toy, k) for k in KS]
    p = sum(one.ballot.votes[vote].probabilities for one in predictions) / len(KS)
    np.testing.assert_allclose(said.probabilities, p, atol=1e-15)
    distances = [one.ballot.around.distances for one in predictions]
    np.testing.assert_allclose(said.facts[:, 1], np.mean([one.mean(axis=1) for one in distances], axis=0))
    spread = np.array([-sum(x * np.log(x) for x in row if x > 0) for row in p])
    np.testing.assert_allclose(said.facts[:, 2:4], np.stack([spread, spread**2], axis=1), atol=1e-12)
    assert (said.k == 6).all()


@pytest.mark.parametrize("vote", COMPARED)
def test_with_a_k_of_its_own_a_query_hears_its_first_k_neighbors(toy: AttnKNN, vote: str):
    said = cast_variant(toy, adaptive(1.0), [toy.queries], NOISE, (vote,))[vote]
    pool = toy.queries.pool.entries
    ks = choose_k(toy.observe(NOISE).labels[pool], 3, 1.0)
    assert len({*ks.tolist()}) > 2
    np.testing.assert_array_equal(said.k, ks)
    for row, k in enumerate(ks):
        np.testing.assert_allclose(
            said.probabilities[row], plain(toy, int(k)).ballot.votes[vote].probabilities[row], atol=1e-15
        )


def test_variants_ask_no_more_neighbors_than_there_are(toy: AttnKNN):
    found = list_variants(7, 20, n_views=1)
    assert tuple(found) == ("plain", "tuned k", "k-ensemble", "adaptive k")
    asked = [np.max(ks) for some in found.values() for one in some for _, ks in one([toy.queries], toy.observe(NOISE))]
    assert max(asked) == 20
    assert tuple(list_variants(16, 64, n_views=5))[-1] == "views"


# ---- Views


def digits_like(*shape: int) -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 17, shape).astype(np.float32)
    images[0].flat[0] = 0  # the darkest pixel, with which training fills borders
    return images


def is_among(view: np.ndarray, seen: list[np.ndarray]) -> bool:
    return any(np.array_equal(view, one) for one in seen)


def test_views_of_small_images_are_among_those_of_training():
    config, images = EmbedderConfig("cnn", shift=2, flip=True), digits_like(1, 8, 8)
    views, generator = list(make_views(images, config)), torch.Generator().manual_seed(0)
    seen = [augment(torch.tensor(images), config, generator).numpy() for _ in range(500)]
    assert len(views) == 5  # small images are never mirrored in training
    np.testing.assert_array_equal(views[0], images)
    assert all(is_among(view, seen) for view in views)
    assert len({view.tobytes() for view in views}) == 5


@pytest.mark.parametrize("shape", [(1, 9, 8), (1, 9, 8, 3)])
@pytest.mark.parametrize("flip", [False, True])
def test_views_of_large_images_are_among_those_of_training(shape: tuple[int, ...], flip: bool):
    config, images = EmbedderConfig("fast_cnn", shift=2, flip=flip), digits_like(*shape)
    views, generator = list(make_views(images, config)), torch.Generator().manual_seed(0)
    seen = [
        shift_and_flip(torch.tensor(images), torch.tensor([flip and draw % 2 == 1]), 2, generator).numpy()
        for draw in range(500)
    ]
    assert len({view.tobytes() for view in views}) == len(views) == (10 if flip else 5)
    np.testing.assert_array_equal(views[0], images)
    assert all(is_among(view, seen) for view in views)


def test_images_that_training_did_not_move_are_only_mirrored():
    config, images = EmbedderConfig("fast_cnn", shift=0, flip=True), digits_like(2, 9, 8)
    as_it_is, mirrored = make_views(images, config)
    np.testing.assert_array_equal(as_it_is, images)
    np.testing.assert_array_equal(mirrored, images[:, :, ::-1])


def test_rows_of_a_table_have_no_views_but_themselves(iris: AttnKNN):
    rows = iris.bundle.arrays["query_inputs"]
    (view,) = make_views(rows, iris.config.embedder)
    np.testing.assert_array_equal(view, rows)
    assert ask_views(iris, rows, iris.queries) == [iris.queries]


def test_every_view_is_embedded_and_finds_its_own_neighbors():
    digits = load("digits")
    queries = digits.queries.take(np.arange(0, 540, 27))
    images = digits.bundle.arrays["query_inputs"][::27]
    views = ask_views(digits, images, queries)
    predictions = [digits.predict(view, 16, NOISE) for view in make_views(images, digits.config.embedder)]
    assert len(views) == 5
    assert len({view.pool.entries.tobytes() for view in views}) == 5
    said = cast_variant(digits, viewed(16), views, NOISE)
    for vote in COMPARED:
        expected = np.mean([one.ballot.votes[vote].probabilities for one in predictions], axis=0)
        np.testing.assert_allclose(said[vote].probabilities, expected, atol=1e-6)


# ---- Fitted and measured


def test_the_plain_variant_is_fitted_as_training_fits_the_plain_vote(iris: AttnKNN):
    config = iris.config
    draws = noise_draws(config.attention, 3, config.seed)
    fitted = fit_variant(iris, [fixed(config.attention.k)], [held_out_queries(iris)], draws)
    for vote, one in fitted.items():
        shipped = iris.fitted.calibrators[vote]
        np.testing.assert_allclose(one.calibrator.sink, shipped.sink, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(one.calibrator.heat, shipped.heat, rtol=1e-3, atol=1e-3)


def test_each_vote_takes_the_candidate_with_the_lowest_loss(iris: AttnKNN):
    held_out, draws = [held_out_queries(iris)], [LabelNoise(), LabelNoise("symmetric", 0.4, 99)]
    candidates = list_variants(8, held_out[0].pool.k, 1)["tuned k"]
    alone = [fit_variant(iris, [one], held_out, draws) for one in candidates]
    assert len(alone) == len({*ENSEMBLE, held_out[0].pool.k})
    together = fit_variant(iris, candidates, held_out, draws)
    for vote, taken in together.items():
        losses = [one[vote].loss for one in alone]
        assert taken.loss == min(losses)
        assert taken.variant is candidates[int(np.argmin(losses))]
    assert len({taken.variant for taken in together.values()}) > 1


def test_plain_rows_are_those_of_the_protocol_and_gaps_are_paired(toy: AttnKNN):
    calibrators = toy.fitted.calibrators
    fitted = {
        name: {vote: FittedVariant(variant, calibrators[vote], 0.0) for vote in COMPARED}
        for name, variant in {"plain": fixed(7), "k-ensemble": fixed(*KS)}.items()
    }
    levels = [[LabelNoise()], [LabelNoise("pair", 0.4, seed) for seed in (0, 1)]]
    frame = compare_variants(toy, fitted, [toy.queries], levels)
    assert len(frame) == 2 * 2 * len(COMPARED)
    for noises, (_, level) in zip(levels, frame.groupby("noise_rate", sort=False), strict=True):
        measured = protocol.evaluate(toy, 7, noises).groupby("vote").mean(numeric_only=True)
        compared = protocol.compare(toy, 7, noises)
        for vote in COMPARED:
            row, other = (level[(level["vote"] == vote) & (level["variant"] == name)].iloc[0] for name in fitted)
            for name in ("accuracy", "nll", "ece_debiased", "augrc", "effective_neighbors"):
                assert row[name] == pytest.approx(measured[name][vote], nan_ok=True)
            assert row["draws"] == len(noises)
            assert (row[["accuracy_gap", "accuracy_low", "nll_gap", "nll_high"]] == 0).all()
            said = [cast_variant(toy, fixed(*KS), [toy.queries], noise, (vote,))[vote] for noise in noises]
            hits = np.stack([one.probabilities.argmax(axis=1) == toy.queries.labels for one in said]).astype(float)
            assert other["accuracy_gap"] == pytest.approx(hits.mean() - row["accuracy"])
            assert other["nll_gap"] == pytest.approx(other["nll"] - row["nll"])
            interval = paired_interval(hits, compared[vote]["hits"])
            assert (other["accuracy_low"], other["accuracy_high"]) == pytest.approx(interval)


def test_only_queries_with_labels_can_be_measured(toy: AttnKNN):
    nameless = replace(toy.queries, labels=None)
    with pytest.raises(ValueError, match="only queries with labels"):
        fit_variant(toy, [fixed(5)], [nameless], [NOISE])
