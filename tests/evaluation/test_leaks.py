"""The leak laboratory: each switch moves what it names, nothing else, and none is on unless it is asked for."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from attnknn.arrays import softmax, tally
from attnknn.bank.entries import observe, surround
from attnknn.bundle import Queries
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.data import load_dataset
from attnknn.evaluation.float_error import N_BINS, add_in_float32, float_error
from attnknn.evaluation.leaks import (
    FittedAttention,
    Laboratory,
    Measured,
    Switches,
    measure,
    paired_ece_interval,
    pull,
    with_constant_bias,
)
from attnknn.evaluation.protocol import compare
from attnknn.models.attention import attend
from attnknn.models.terms import Surroundings
from attnknn.reliability import ece
from attnknn.training.run import held_out_queries
from attnknn.votes import uniform_weights
from benchmarks.leaks import HONEST, UNBOUNDED, Bench
from tests import oracles
from tests.answers import draw_answers

NOISES = [LabelNoise(), LabelNoise("symmetric", 0.5, 7)]


@pytest.fixture(scope="module")
def held_out(iris: AttnKNN) -> Queries:
    return held_out_queries(iris)


@pytest.fixture(scope="module")
def groups(held_out: Queries) -> np.ndarray:
    dataset = load_dataset("iris")
    row = {item: number for number, item in enumerate(dataset.ids.tolist())}
    return dataset.groups[[row[item] for item in held_out.ids.tolist()]]


@pytest.fixture(scope="module")
def laboratory(iris: AttnKNN, held_out: Queries, groups: np.ndarray) -> Laboratory:
    return Laboratory.open(iris.entries, held_out, groups)


def collect(laboratory: Laboratory, iris: AttnKNN, **on: bool) -> tuple[Surroundings, np.ndarray]:
    return laboratory.collect(Switches(**on), NOISES, iris.config.attention)


def differing(a: Surroundings, b: Surroundings) -> set[str]:
    names = [field.name for field in fields(Surroundings)]
    return {name for name in names if not np.array_equal(getattr(a, name), getattr(b, name))}


# ---- What a fit sees


def test_no_fault_is_on_by_default():
    assert not any(getattr(Switches(), field.name) for field in fields(Switches))


@pytest.mark.parametrize("row", [0, 5])
def test_left_out_of_the_bank_or_of_neighbors_and_trust_is_the_same(
    iris: AttnKNN, held_out: Queries, groups: np.ndarray, row: int
):
    """With one item in the bank, leaving it out must give what the bank without it gives."""
    one = held_out.take(np.array([row]))
    around, targets = Laboratory.open(iris.entries, one, groups[[row]]).collect(
        Switches(), NOISES, iris.config.attention
    )
    for draw, noise in enumerate(NOISES):
        alone = surround(one.keys, one.pool.first(8), observe(iris.entries, noise))
        for name in ("distances", "labels", "trust"):
            np.testing.assert_array_equal(getattr(around, name)[[draw]], getattr(alone, name), name)
    assert targets.tolist() == [one.labels[0]] * len(NOISES)


def test_self_in_the_bank_is_the_nearest_of_all(laboratory: Laboratory, iris: AttnKNN):
    keys, k = laboratory.entries.keys[laboratory.held_out], iris.config.attention.k
    own = laboratory.held_out[:, None]
    honest = laboratory.bank.search(keys, k, exclude_groups=laboratory.entries.groups[laboratory.held_out])
    leaking = laboratory.bank.search(keys, k)
    assert not (honest.entries == own).any()
    found = (leaking.entries == own).any(axis=1)
    assert found.all()
    for switches, expected in (({}, honest), ({"self_in_bank": True}, leaking)):
        around, _ = collect(laboratory, iris, **switches)
        np.testing.assert_array_equal(around.distances[: len(keys)], expected.distances)
        np.testing.assert_array_equal(around.labels[: len(keys)], laboratory.entries.labels[expected.entries])
    assert (leaking.distances[:, 0] == 0).all()


def test_trust_with_the_query_inside_counts_its_label_and_moves_nothing_else(laboratory: Laboratory, iris: AttnKNN):
    (honest, targets), (leaking, same) = (collect(laboratory, iris, trust_with_query=on) for on in (False, True))
    assert differing(honest, leaking) == {"trust"}
    np.testing.assert_array_equal(targets, same)
    entries, rows = laboratory.entries, laboratory.held_out
    found = laboratory.bank.search(entries.keys[rows], 8, exclude_groups=entries.groups[rows]).entries
    labels = np.concatenate([observe(entries, noise).labels[None] for noise in NOISES])
    for draw, b in ((0, 0), (1, 3), (1, len(rows) - 1)):
        for j, entry in enumerate(found[b]):
            given = (entries.neighborhoods, labels[draw].tolist(), entry, 20)
            inside = oracles.trust(*given)
            outside = oracles.trust(*given, groups=entries.groups, exclude_group=entries.groups[rows[b]])
            assert leaking.trust[draw * len(rows) + b, j] == pytest.approx(inside)
            assert honest.trust[draw * len(rows) + b, j] == pytest.approx(outside)


def test_noisy_targets_are_what_the_bank_shows(laboratory: Laboratory, iris: AttnKNN):
    (honest, targets), (same, observed) = (collect(laboratory, iris, noisy_targets=on) for on in (False, True))
    assert differing(honest, same) == set()
    rows = laboratory.held_out
    np.testing.assert_array_equal(targets, np.tile(laboratory.entries.labels[rows], 2))
    np.testing.assert_array_equal(
        observed, np.concatenate([observe(laboratory.entries, n).labels[rows] for n in NOISES])
    )
    assert (targets != observed).any()


def test_a_clean_fit_sees_one_draw_without_noise(laboratory: Laboratory, iris: AttnKNN):
    around, targets = collect(laboratory, iris, clean_only=True)
    both, _ = collect(laboratory, iris)
    size = len(laboratory.held_out)
    assert len(targets) == len(around.labels) == size
    np.testing.assert_array_equal(around.labels, both.labels[:size])


def test_squared_distances_are_squared_and_nothing_else(laboratory: Laboratory, iris: AttnKNN):
    (honest, _), (squared, _) = (collect(laboratory, iris, squared=on) for on in (False, True))
    assert differing(honest, squared) == {"distances"}
    np.testing.assert_array_equal(squared.distances, honest.distances**2)


def test_memorized_items_are_entries_as_many_as_were_held_out(laboratory: Laboratory, iris: AttnKNN):
    entries, rows = laboratory.entries, laboratory.memorized
    assert len({*rows.tolist()}) == len(laboratory.held_out)
    assert {*entries.ids[rows].tolist()} <= {*iris.entries.ids.tolist()}
    around, targets = collect(laboratory, iris, memorized=True)
    np.testing.assert_array_equal(targets, np.tile(entries.labels[rows], 2))
    found = laboratory.bank.search(entries.keys[rows], 8, exclude_groups=entries.groups[rows])
    np.testing.assert_array_equal(around.distances[: len(rows)], found.distances)


def test_votes_are_fitted_on_items_with_labels(iris: AttnKNN, held_out: Queries, groups: np.ndarray):
    with pytest.raises(ValueError, match="items with labels"):
        Laboratory.open(iris.entries, replace(held_out, labels=None), groups)


# ---- What comes of it


def test_a_leak_makes_the_fit_listen_to_the_item_itself(iris: AttnKNN):
    """Its own label is always the one that is asked for, so it gets nearly all the weight."""
    bench = Bench(iris)
    nearest = []
    for on in (UNBOUNDED, replace(UNBOUNDED, self_in_bank=True)):
        around, _ = bench.laboratory.collect(on, bench.noises, bench.attention)
        nearest.append(attend(around, bench.fit(on).vote.attention).weights.mean(axis=1)[:, 0].mean())
    honest, leaking = nearest
    assert leaking > 0.8 > 0.5 > honest


def test_what_a_fit_saw_is_told_with_it(iris: AttnKNN):
    """A pull comes from torn neighborhoods alone."""
    bench, clean = Bench(iris), Switches(clean_only=True)
    around, targets = bench.laboratory.collect(clean, bench.noises, bench.attention)
    fit, torn = bench.fit(clean), (around.labels != around.labels[:, :1]).any(axis=1)
    assert 0 < torn.sum() < len(torn)
    assert fit.unanimous == pytest.approx(1 - torn.mean())
    pulls = pull(uniform_weights(around.distances), around.labels, targets)
    assert (pulls[~torn] == 0).all()
    assert (pulls[torn] > 0).any()
    assert fit.pulled > 0


def test_the_laboratory_measures_a_shipped_vote_as_the_protocol_does(iris: AttnKNN):
    noises = [LabelNoise("symmetric", 0.4, seed) for seed in (0, 1)]
    found = compare(iris, None, noises)["attention"]
    shipped = FittedAttention(iris.fitted.attention, iris.fitted.calibrators["attention"])
    queries = iris.queries
    arounds = [surround(queries.keys, queries.pool.first(8), iris.observe(noise)) for noise in noises]
    measured = measure(arounds, queries.labels, shipped, HONEST)
    np.testing.assert_array_equal(measured.hits, found["hits"])
    np.testing.assert_allclose(measured.losses, found["losses"], rtol=1e-12)
    predictions = [iris.predict_items(noise=noise) for noise in noises]
    expected = np.mean([ece(one.ballot.calibrated["attention"], queries.labels) for one in predictions])
    assert measured.calibration_error() == pytest.approx(expected, abs=1e-12)
    effective = np.mean([one.effective_neighbors("attention") for one in predictions])
    assert measured.effective_neighbors == pytest.approx(effective, rel=0.02)


def test_a_constant_bias_moves_no_probability_and_gets_no_gradient(laboratory: Laboratory, iris: AttnKNN):
    around, targets = collect(laboratory, iris)
    biased, features = with_constant_bias(around, iris.fitted.attention)
    assert np.ptp(features[:, -1], axis=1).max() == 0
    assert np.ptp(features[:, -1, 0]) > 0
    before = attend(around, iris.fitted.attention)
    after = attend(around, biased, features=features)
    assert np.abs(after.scores - before.scores).min() > 1
    np.testing.assert_allclose(after.probabilities, before.probabilities, atol=1e-13)

    moving = torch.tensor(biased.coefficients, requires_grad=True)
    scores = moving @ torch.tensor(features)
    p = tally(softmax(scores).mean(dim=1), torch.tensor(around.labels.astype(np.int64)), 3)
    loss = -torch.log(p[torch.arange(len(targets)), torch.tensor(targets.astype(np.int64))] + 1e-3).mean()
    (gradient,) = torch.autograd.grad(loss, moving)
    assert gradient[:, -1].abs().max() < 1e-15
    assert gradient[:, :-1].abs().max() > 1e-6


def test_a_constant_bias_is_switched_on_where_it_is_measured(iris: AttnKNN):
    queries = iris.queries
    arounds = [surround(queries.keys, queries.pool.first(8), iris.observe(NOISES[1]))]
    shipped = FittedAttention(iris.fitted.attention, iris.fitted.calibrators["attention"])
    plain, biased = (measure(arounds, queries.labels, shipped, Switches(constant_bias=on)) for on in (False, True))
    np.testing.assert_allclose(biased.probabilities, plain.probabilities, atol=1e-12)
    assert (biased.probabilities != plain.probabilities).any()  # rounding: it was there


@pytest.mark.parametrize("labels", [[2, 2, 2, 2], [1, 1, 1, 1]])
def test_unanimous_neighbors_do_not_pull_right_or_wrong(labels: list[int]):
    weights = softmax(np.random.default_rng(0).normal(size=(1, 4)))
    assert pull(weights, np.array([labels]), np.array([2])).tolist() == [0.0]


def test_the_pull_is_the_gradient_of_the_loss():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=(6, 5)), rng.integers(0, 2, (6, 5))
    labels[:, 0] = 1
    moving = torch.tensor(scores, requires_grad=True)
    p = (torch.softmax(moving, dim=1) * torch.tensor(labels == 1)).sum(dim=1)
    (gradient,) = torch.autograd.grad(-torch.log(p).sum(), moving)
    expected = gradient.abs().sum(dim=1).numpy()
    np.testing.assert_allclose(pull(softmax(scores), labels, np.ones(6, int)), expected, atol=1e-12)


# ---- Intervals of calibration errors


def measured(p: np.ndarray, labels: np.ndarray) -> Measured:
    hits = (p.argmax(axis=2) == labels).astype(np.float64)
    losses = -np.log(np.take_along_axis(p, labels[None, :, None], axis=2)[..., 0])
    return Measured(p, hits, losses, labels, 1.0)


@pytest.mark.parametrize("n_draws", [1, 3])
def test_an_interval_of_calibration_errors_finds_overconfidence_and_nothing_else(n_draws: int):
    p, labels = draw_answers(n=600, seed=3)
    calibrated = measured(np.stack([p] * n_draws), labels)
    sharp = measured(softmax(np.log(calibrated.probabilities), temperature=0.3), labels)
    assert paired_ece_interval(calibrated, calibrated, resamples=20) == (0, 0)
    gap = sharp.calibration_error() - calibrated.calibration_error()
    low, high = paired_ece_interval(sharp, calibrated, resamples=100)
    assert 0.05 < low < gap < high
    assert paired_ece_interval(calibrated, sharp, resamples=100) == pytest.approx((-high, -low))


# ---- Added up in float32


def uniform(k: int, n: int, wrong: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unanimous votes of k neighbors on n items, some of them wrong."""
    labels = np.zeros(n, np.int64)
    labels[:wrong] = 1
    return np.full((n, k), 1 / k, np.float32), np.zeros((n, k), np.int64), labels


@pytest.mark.parametrize(("k", "is_lost"), [(5, False), (10, True), (16, False), (20, True), (50, False)])
def test_unanimous_votes_of_ten_and_twenty_fall_behind_the_last_bin(k: int, is_lost: bool):
    found = float_error(*uniform(k, 100, 13), n_classes=3)
    assert found.lost == is_lost
    assert found.published == pytest.approx(0 if is_lost else 0.13, abs=1e-6)
    assert found.repaired == pytest.approx(0.13, abs=1e-12)
    assert found.equal_mass == pytest.approx(0.13, abs=1e-12)


@pytest.mark.parametrize("k", [5, 10, 16, 20, 50])
def test_the_published_error_is_that_of_the_original(k: int):
    rng = np.random.default_rng(k)
    labels = rng.integers(0, 3, 200)
    neighbors = np.where(rng.random((200, k)) < 0.7, labels[:, None], rng.integers(0, 3, (200, k)))
    neighbors[:80] = labels[:80, None]
    labels[:8] = (labels[:8] + 1) % 3
    weights = np.full((200, k), 1 / k, np.float32)
    p = add_in_float32(weights, neighbors, 3)
    for row in range(0, 200, 29):
        for c in range(3):
            total = np.float32(0)
            for label in neighbors[row]:
                total += np.float32(1 / k) if label == c else np.float32(0)
            assert p[row, c] == total
    right = p.argmax(axis=1) == labels
    expected = oracles.ece_that_drops(p.max(axis=1), right, N_BINS)
    found = float_error(weights, neighbors, labels, 3)
    assert found.published == pytest.approx(expected, abs=0.02)  # sums on the edge of a bin may change sides
    assert found.lost == np.mean(p.max(axis=1) > 1)
    exact = tally(np.full((200, k), 1 / k), neighbors, 3)
    assert found.equal_mass == pytest.approx(ece(exact, labels), abs=1e-12)
