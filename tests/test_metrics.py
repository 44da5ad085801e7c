"""Metrics: laws, slow twins, and scikit-learn as an outside witness."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss

from attnknn import metrics
from tests import oracles

BINNINGS = ("equal_mass", "equal_width")


def draw_answers(n=300, n_classes=4, seed=0, spread=0.5):
    """Draw probabilities and labels that agree with them: a perfectly calibrated model."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, spread), n)
    labels = (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return p, labels


def draw_votes(n=200, k=5, n_classes=3, seed=0):
    """Draw uniform votes: multiples of 1/k, full of ties and of numbers on the edge of a bin."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(k, [1 / n_classes] * n_classes, n) / k, rng.integers(0, n_classes, n)


def added_up(k):
    """Add 1/k in float32, k times, as the original's uniform vote did."""
    total = np.float32(0)
    for _ in range(k):
        total += np.float32(1 / k)
    return total


# ---- Law 8: nothing falls out of a bin


@pytest.mark.parametrize("k", [10, 20])
@pytest.mark.parametrize("binning", BINNINGS)
def test_a_unanimous_float32_vote_exceeds_one_and_still_has_a_bin(k, binning):
    confidence = added_up(k)
    assert confidence > 1

    p = np.zeros((100, 3), dtype=np.float32)
    p[:, 0] = confidence
    labels = np.repeat([0, 1], [87, 13])
    assert oracles.ece_that_drops(p[:, 0], labels == 0, 15) == 0  # all hundred fell out
    assert metrics.reliability(p, labels, binning=binning).count.sum() == 100
    assert metrics.ece(p, labels, binning=binning) == pytest.approx(0.13, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 5, 16])
def test_the_dropping_ece_was_right_for_other_k(k):
    right = np.repeat([True, False], [87, 13])
    assert added_up(k) <= 1
    assert oracles.ece_that_drops(np.full(100, added_up(k)), right, 15) == pytest.approx(0.13, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 60),
    n_classes=st.integers(1, 5),
    n_bins=st.integers(1, 40),
    binning=st.sampled_from(BINNINGS),
    jitter=st.sampled_from([0.0, 1e-7, -1e-7, 1e-4]),
    coarse=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_bins_always_hold_every_item(n, n_classes, n_bins, binning, jitter, coarse, seed):
    rng = np.random.default_rng(seed)
    p = rng.multinomial(5, [1 / n_classes] * n_classes, n) / 5 if coarse else rng.dirichlet(np.ones(n_classes), n)
    labels = rng.integers(0, n_classes, n)
    bins = metrics.reliability((p * (1 + jitter)).astype(np.float32), labels, n_bins, binning)
    assert bins.count.sum() == n
    assert len(bins.count) == n_bins
    assert np.array_equal(np.isnan(bins.confidence), bins.count == 0)
    assert np.array_equal(np.isnan(bins.accuracy), bins.count == 0)
    full = bins.count > 0
    assert np.all((bins.lower <= bins.confidence + 1e-6)[full])
    assert np.all((bins.confidence <= bins.upper + 1e-6)[full])
    assert np.sum(bins.count[full] * bins.accuracy[full]) / n == pytest.approx(metrics.accuracy(p, labels))


def test_probabilities_are_clipped_and_sum_to_one():
    clean = metrics.clean_probabilities(np.float32([[1.0000001, 0, -1e-7], [0.2, 0.2, 0.2]]))
    assert clean.dtype == np.float64
    assert clean.tolist()[0] == [1, 0, 0]
    np.testing.assert_allclose(clean.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(clean[1], 1 / 3, atol=1e-15)


# ---- Twins and witnesses


@pytest.mark.parametrize("answers", [draw_answers(), draw_answers(97, 3, 1, 0.1), draw_votes()])
def test_scores_equal_their_twins_and_scikit_learn(answers):
    p, labels = answers
    n_classes = p.shape[1]
    predicted = p.argmax(axis=1)
    floored = np.clip(p, 1e-9, 1)
    assert metrics.accuracy(p, labels) == accuracy_score(labels, predicted)
    assert metrics.macro_f1(p, labels) == pytest.approx(oracles.macro_f1(p, labels), abs=1e-12)
    assert metrics.macro_f1(p, labels) == pytest.approx(f1_score(labels, predicted, average="macro"), abs=1e-12)
    assert metrics.brier(p, labels) == pytest.approx(oracles.brier(p, labels), abs=1e-12)
    assert metrics.brier(p, labels) == pytest.approx(
        brier_score_loss(labels, p, labels=range(n_classes), scale_by_half=False), abs=1e-12
    )
    floored /= floored.sum(axis=1, keepdims=True)
    assert metrics.negative_log_likelihood(floored, labels) == pytest.approx(
        log_loss(labels, floored, labels=range(n_classes)), abs=1e-12
    )


def test_f1_leaves_out_a_class_that_nobody_has_or_predicts():
    p, labels = np.eye(4)[[0, 0, 1]], np.array([0, 1, 1])
    assert metrics.macro_f1(p, labels) == pytest.approx(f1_score(labels, [0, 0, 1], average="macro"))


def test_a_certain_error_costs_as_much_as_the_floor_says():
    assert metrics.negative_log_likelihood([[1, 0]], [1]) == pytest.approx(-np.log(1e-12))
    assert metrics.negative_log_likelihood([[1, 0]], [1], floor=1e-3) == pytest.approx(-np.log(1e-3))
    assert metrics.brier([[1, 0]], [1]) == 2


@pytest.mark.parametrize("answers", [draw_answers(), draw_votes(), draw_votes(k=10, seed=3), draw_answers(4, 2)])
@pytest.mark.parametrize("n_bins", [1, 7, 10, 15])
@pytest.mark.parametrize("binning", BINNINGS)
def test_bins_and_ece_equal_their_twins(answers, n_bins, binning):
    p, labels = answers
    bins = metrics.reliability(p, labels, n_bins, binning)
    slow = oracles.reliability(p, labels, n_bins, binning)
    assert bins.count.tolist() == [len(items) for items in slow]
    for b, items in enumerate(slow):
        if items:
            np.testing.assert_allclose([bins.confidence[b], bins.accuracy[b]], np.mean(items, axis=0), atol=1e-12)
    assert metrics.ece(p, labels, n_bins, binning) == pytest.approx(oracles.ece(p, labels, n_bins, binning), abs=1e-12)


def test_equal_mass_bins_differ_by_one_item_at_most_where_nothing_is_tied():
    p, labels = draw_answers(1000, 5)
    count = metrics.reliability(p, labels, 15).count
    assert count.max() - count.min() <= 1


def test_equal_confidences_stay_in_one_bin():
    p = np.array([[0.5, 0.5]] * 5 + [[1.0, 0.0]] * 95)
    labels = np.zeros(100, dtype=int)
    assert sorted(metrics.reliability(p, labels, 10).count.tolist()) == [0] * 8 + [5, 95]


@pytest.mark.parametrize("binning", BINNINGS)
def test_bins_do_not_depend_on_the_order_of_items_nor_on_how_a_vote_was_added_up(binning):
    p, labels = draw_votes(n=300, k=5, seed=4)
    count = metrics.reliability(p, labels, binning=binning).count
    shuffled = np.random.default_rng(0).permutation(len(p))
    assert np.array_equal(metrics.reliability(p[shuffled], labels[shuffled], binning=binning).count, count)
    added = np.zeros_like(p, dtype=np.float32)
    for _ in range(5):
        added += np.where(added < p - 0.1, np.float32(0.2), np.float32(0))
    assert not np.array_equal(added, p)
    assert np.array_equal(metrics.reliability(added, labels, binning=binning).count, count)


def test_bins_are_read_only():
    p, labels = draw_answers()
    with pytest.raises(ValueError, match="read-only"):
        metrics.reliability(p, labels).count[0] = 7


# ---- Debiasing and chance


@pytest.mark.parametrize("binning", BINNINGS)
def test_the_debiased_ece_is_the_mean_of_kumars_draws(binning):
    p, labels = draw_answers(400, 3, seed=2)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    for q in (p, sharp):
        drawn = oracles.debiased_ece(q, labels, 15, binning, draws=100_000)
        assert metrics.ece(q, labels, 15, binning, debiased=True) == pytest.approx(drawn, abs=2e-4)


def test_debiasing_takes_two_fifths_where_calibrated_and_nearly_all_where_the_gap_is_real():
    plain, debiased, shifted, shifted_debiased = [], [], [], []
    for seed in range(40):
        p, labels = draw_answers(600, 2, seed, spread=2.0)
        plain.append(metrics.ece(p, labels))
        debiased.append(metrics.ece(p, labels, debiased=True))
        wrong = np.where(np.random.default_rng(seed).random(600) < 0.3, 1 - labels, labels)
        shifted.append(metrics.ece(p, wrong))
        shifted_debiased.append(metrics.ece(p, wrong, debiased=True))
    assert np.mean(debiased) / np.mean(plain) == pytest.approx(2 - np.sqrt(2), abs=0.05)
    truth = np.mean([0.3 * np.mean(2 * draw_answers(600, 2, s, 2.0)[0].max(axis=1) - 1) for s in range(40)])
    assert abs(np.mean(shifted_debiased) - truth) < abs(np.mean(shifted) - truth)


def test_debiasing_changes_nothing_where_bins_are_all_right_or_all_wrong():
    p, labels = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10), np.repeat([0, 1], 10)
    assert metrics.ece(p, labels, 2, debiased=True) == pytest.approx(metrics.ece(p, labels, 2), abs=1e-9)


@pytest.mark.parametrize("binning", BINNINGS)
def test_the_chance_band_is_that_of_redrawn_labels(binning):
    p, _ = draw_answers(80, 3)
    band = metrics.chance_ece(p, 5, resamples=4000, seed=1, binning=binning)
    slow = oracles.chance_ece(p, 5, binning, draws=400)
    assert band.mean == pytest.approx(np.mean(slow), abs=0.004)
    assert band.low == pytest.approx(np.quantile(slow, 0.025), abs=0.008)
    assert band.high == pytest.approx(np.quantile(slow, 0.975), abs=0.012)


@pytest.mark.parametrize("debiased", [False, True])
def test_a_calibrated_model_lies_in_its_chance_band_about_nineteen_times_in_twenty(debiased):
    inside = 0
    for seed in range(100):
        p, labels = draw_answers(300, 3, seed)
        band = metrics.chance_ece(p, resamples=300, debiased=debiased)
        inside += band.low <= metrics.ece(p, labels, debiased=debiased) <= band.high
    assert 88 <= inside <= 100


def test_an_overconfident_model_lies_far_above_its_band():
    p, labels = draw_answers(600, 4, seed=1, spread=1.0)
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert metrics.ece(sharp, labels) > 2 * metrics.chance_ece(sharp).high


def test_chance_needs_no_order_and_shrinks_with_more_items():
    p, _ = draw_answers(200, 3)
    assert metrics.chance_ece(p[::-1]) == metrics.chance_ece(p)
    assert metrics.chance_ece(np.tile(p, (16, 1))).mean < 0.4 * metrics.chance_ece(p).mean
    assert metrics.chance_ece(np.eye(3)) == metrics.ChanceBand(0.0, 0.0, 0.0)


# ---- Neighbors


def test_effective_neighbors_run_from_one_to_k():
    weights = np.array([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0.7, 0.1, 0.1, 0.1]])
    counts = metrics.effective_neighbors(weights)
    np.testing.assert_allclose(counts[:3], [1, 4, 2], atol=1e-12)
    assert 1 < counts[3] < 4


def test_effective_neighbors_agree_across_libraries():
    torch = pytest.importorskip("torch")
    strict = pytest.importorskip("array_api_strict")
    weights = np.random.default_rng(0).dirichlet(np.ones(8), (2, 3))
    expected = metrics.effective_neighbors(weights)
    assert expected.shape == (2, 3)
    for library in (torch, strict):
        found = metrics.effective_neighbors(library.asarray(weights))
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)


def test_unanimity_counts_queries_whose_neighbors_agree():
    assert metrics.unanimity([[1, 1], [1, 2], [0, 0], [2, 2]]) == 0.75
    assert metrics.unanimity([[1], [2]]) == 1


# ---- Intervals


def test_the_interval_of_a_mean_is_the_normal_one_for_many_items():
    values = np.random.default_rng(0).normal(3, 2, 4000)
    low, high = metrics.bootstrap_interval(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half], atol=0.1 * half)


def test_an_interval_holds_the_truth_about_nineteen_times_in_twenty():
    rng = np.random.default_rng(1)
    intervals = [metrics.bootstrap_interval(rng.random(200) < 0.8, resamples=500) for _ in range(200)]
    assert 180 <= sum(low <= 0.8 <= high for low, high in intervals) <= 199


def test_the_paired_interval_of_one_seed_is_the_interval_of_the_difference():
    a, b = np.random.default_rng(0).random((2, 100))
    expected = metrics.bootstrap_interval(a - b, seed=3)
    assert metrics.paired_interval(a, b, seed=3) == expected
    assert metrics.paired_interval(a[None], b[None], seed=3) == expected


def test_the_paired_interval_resamples_items_and_seeds():
    rng = np.random.default_rng(0)
    a = rng.random((4, 30)) + rng.normal(0, 0.3, (4, 1)) + rng.normal(0, 0.3, 30)
    b = rng.random((4, 30))
    low, high = metrics.paired_interval(a, b, resamples=20_000)
    slow_low, slow_high = np.quantile(oracles.paired_means(a, b, 3000), [0.025, 0.975])
    assert low == pytest.approx(slow_low, abs=0.03)
    assert high == pytest.approx(slow_high, abs=0.03)


def test_seeds_that_differ_widen_the_interval_and_equal_seeds_do_not():
    rng = np.random.default_rng(0)
    a = rng.random(200)
    one_low, one_high = metrics.paired_interval(a, np.zeros(200))
    same_low, same_high = metrics.paired_interval(np.tile(a, (5, 1)), np.zeros((5, 200)))
    assert same_high - same_low == pytest.approx(one_high - one_low, rel=0.1)
    apart = a + np.array([[-0.4], [-0.2], [0], [0.2], [0.4]])
    apart_low, apart_high = metrics.paired_interval(apart, np.zeros((5, 200)))
    assert apart_high - apart_low > 3 * (one_high - one_low)


def test_pairing_removes_what_items_have_in_common():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(0, 5, 500)
    a, b = difficulty + 0.5 + rng.normal(0, 1, 500), difficulty + rng.normal(0, 1, 500)
    low, high = metrics.paired_interval(a, b)
    assert 0 < low < 0.5 < high
    assert metrics.paired_interval(a, a) == (0.0, 0.0)


def test_draws_are_named_by_their_seed():
    values, (p, _) = np.random.default_rng(0).random(50), draw_answers(50)
    assert metrics.bootstrap_interval(values, seed=1) == metrics.bootstrap_interval(values, seed=1)
    assert metrics.bootstrap_interval(values, seed=1) != metrics.bootstrap_interval(values, seed=2)
    assert metrics.chance_ece(p, seed=1) == metrics.chance_ece(p, seed=1)
    assert metrics.chance_ece(p, seed=1) != metrics.chance_ece(p, seed=2)
    narrow, wide = metrics.bootstrap_interval(values, 0.5), metrics.bootstrap_interval(values, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_ten_thousand_items_are_resampled_in_a_moment():
    values = np.random.default_rng(0).random((5, 10_000))
    start = time.process_time()
    metrics.paired_interval(values, values[::-1])
    assert time.process_time() - start < 1.5


# ---- Impossible arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy([[3.0, -2.0]], [0]), "p must hold numbers between 0 and 1"),
        (lambda: metrics.accuracy([[np.nan, 1.0]], [0]), "p must hold numbers between 0 and 1"),
        (lambda: metrics.accuracy([[0.0, 0.0]], [0]), "every row of p must have a positive number"),
        (lambda: metrics.accuracy([0.5, 0.5], [0]), "p must be of shape"),
        (lambda: metrics.accuracy(np.ones((0, 2)), []), "p must be of shape"),
        (lambda: metrics.brier([[0.5, 0.5]], [0, 1]), "labels must be 1 integers"),
        (lambda: metrics.brier([[0.5, 0.5]], [0.0]), "labels must be 1 integers"),
        (lambda: metrics.macro_f1([[0.5, 0.5]], [2]), "labels must be between 0 and 1"),
        (lambda: metrics.macro_f1([[0.5, 0.5]], [-1]), "labels must be between 0 and 1"),
        (lambda: metrics.negative_log_likelihood([[0.5, 0.5]], [0], floor=0), "floor must be above 0"),
        (lambda: metrics.ece([[0.5, 0.5]], [0], n_bins=0), "n_bins must be at least 1"),
        (lambda: metrics.ece([[0.5, 0.5]], [0], binning="banana"), "binning must be one of"),
        (lambda: metrics.chance_ece([[0.5, 0.5]], resamples=0), "resamples must be at least 1"),
        (lambda: metrics.chance_ece([[0.5, 0.5]], level=1), "level must be between 0 and 1"),
        (lambda: metrics.unanimity([1, 2]), "labels must be of shape"),
        (lambda: metrics.unanimity(np.ones((0, 3))), "labels must be of shape"),
        (lambda: metrics.bootstrap_interval([]), "values must be finite numbers, at least one"),
        (lambda: metrics.bootstrap_interval([np.nan]), "values must be finite numbers"),
        (lambda: metrics.bootstrap_interval([[1.0]]), "values must be of shape"),
        (lambda: metrics.bootstrap_interval([1.0], level=95), "level must be between 0 and 1"),
        (lambda: metrics.paired_interval([1.0], [1.0, 2.0]), "a and b must share a shape"),
        (lambda: metrics.paired_interval([[[1.0]]], [[[1.0]]]), "a and b must share a shape"),
    ],
)
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
