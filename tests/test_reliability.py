"""Reliability: no item falls out of a bin, slow twins, and what chance alone would show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnknn import metrics, reliability
from tests import oracles
from tests.answers import draw_answers, draw_votes

BINNINGS = ("equal_mass", "equal_width")


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
    assert reliability.reliability(p, labels, binning=binning).count.sum() == 100
    assert reliability.ece(p, labels, binning=binning) == pytest.approx(0.13, abs=1e-12)


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
    bins = reliability.reliability((p * (1 + jitter)).astype(np.float32), labels, n_bins, binning)
    assert bins.count.sum() == n
    assert len(bins.count) == n_bins
    assert np.array_equal(np.isnan(bins.confidence), bins.count == 0)
    assert np.array_equal(np.isnan(bins.accuracy), bins.count == 0)
    full = bins.count > 0
    assert np.all((bins.lower <= bins.confidence + 1e-6)[full])
    assert np.all((bins.confidence <= bins.upper + 1e-6)[full])
    assert np.sum(bins.count[full] * bins.accuracy[full]) / n == pytest.approx(metrics.accuracy(p, labels))


# ---- Twins


@pytest.mark.parametrize("answers", [draw_answers(), draw_votes(), draw_votes(k=10, seed=3), draw_answers(4, 2)])
@pytest.mark.parametrize("n_bins", [1, 7, 10, 15])
@pytest.mark.parametrize("binning", BINNINGS)
def test_bins_and_ece_equal_their_twins(answers, n_bins, binning):
    p, labels = answers
    bins = reliability.reliability(p, labels, n_bins, binning)
    slow = oracles.reliability(p, labels, n_bins, binning)
    assert bins.count.tolist() == [len(items) for items in slow]
    for b, items in enumerate(slow):
        if items:
            np.testing.assert_allclose([bins.confidence[b], bins.accuracy[b]], np.mean(items, axis=0), atol=1e-12)
    assert reliability.ece(p, labels, n_bins, binning) == pytest.approx(
        oracles.ece(p, labels, n_bins, binning), abs=1e-12
    )


def test_equal_mass_bins_differ_by_one_item_at_most_where_nothing_is_tied():
    p, labels = draw_answers(1000, 5)
    count = reliability.reliability(p, labels, 15).count
    assert count.max() - count.min() <= 1


def test_equal_confidences_stay_in_one_bin():
    p = np.array([[0.5, 0.5]] * 5 + [[1.0, 0.0]] * 95)
    labels = np.zeros(100, dtype=int)
    assert sorted(reliability.reliability(p, labels, 10).count.tolist()) == [0] * 8 + [5, 95]


@pytest.mark.parametrize("binning", BINNINGS)
def test_bins_do_not_depend_on_the_order_of_items_nor_on_how_a_vote_was_added_up(binning):
    p, labels = draw_votes(n=300, k=5, seed=4)
    count = reliability.reliability(p, labels, binning=binning).count
    shuffled = np.random.default_rng(0).permutation(len(p))
    assert np.array_equal(reliability.reliability(p[shuffled], labels[shuffled], binning=binning).count, count)
    added = np.zeros_like(p, dtype=np.float32)
    for _ in range(5):
        added += np.where(added < p - 0.1, np.float32(0.2), np.float32(0))
    assert not np.array_equal(added, p)
    assert np.array_equal(reliability.reliability(added, labels, binning=binning).count, count)


def test_bins_are_read_only():
    p, labels = draw_answers()
    with pytest.raises(ValueError, match="read-only"):
        reliability.reliability(p, labels).count[0] = 7


# ---- Debiasing and chance


@pytest.mark.parametrize("binning", BINNINGS)
def test_the_debiased_ece_is_the_mean_of_kumars_draws(binning):
    p, labels = draw_answers(400, 3, seed=2)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    for q in (p, sharp):
        drawn = oracles.debiased_ece(q, labels, 15, binning, draws=100_000)
        assert reliability.ece(q, labels, 15, binning, debiased=True) == pytest.approx(drawn, abs=2e-4)


def test_debiasing_takes_two_fifths_where_calibrated_and_nearly_all_where_the_gap_is_real():
    plain, debiased, shifted, shifted_debiased = [], [], [], []
    for seed in range(40):
        p, labels = draw_answers(600, 2, seed, spread=2.0)
        plain.append(reliability.ece(p, labels))
        debiased.append(reliability.ece(p, labels, debiased=True))
        wrong = np.where(np.random.default_rng(seed).random(600) < 0.3, 1 - labels, labels)
        shifted.append(reliability.ece(p, wrong))
        shifted_debiased.append(reliability.ece(p, wrong, debiased=True))
    assert np.mean(debiased) / np.mean(plain) == pytest.approx(2 - np.sqrt(2), abs=0.05)
    truth = np.mean([0.3 * np.mean(2 * draw_answers(600, 2, s, 2.0)[0].max(axis=1) - 1) for s in range(40)])
    assert abs(np.mean(shifted_debiased) - truth) < abs(np.mean(shifted) - truth)


def test_debiasing_changes_nothing_where_bins_are_all_right_or_all_wrong():
    p, labels = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10), np.repeat([0, 1], 10)
    assert reliability.ece(p, labels, 2, debiased=True) == pytest.approx(reliability.ece(p, labels, 2), abs=1e-9)


@pytest.mark.parametrize("binning", BINNINGS)
def test_the_chance_band_is_that_of_redrawn_labels(binning):
    p, _ = draw_answers(80, 3)
    band = reliability.chance_ece(p, 5, resamples=4000, seed=1, binning=binning)
    slow = oracles.chance_ece(p, 5, binning, draws=400)
    assert band.mean == pytest.approx(np.mean(slow), abs=0.004)
    assert band.low == pytest.approx(np.quantile(slow, 0.025), abs=0.008)
    assert band.high == pytest.approx(np.quantile(slow, 0.975), abs=0.012)


@pytest.mark.parametrize("debiased", [False, True])
def test_a_calibrated_model_lies_in_its_chance_band_about_nineteen_times_in_twenty(debiased):
    inside = 0
    for seed in range(100):
        p, labels = draw_answers(300, 3, seed)
        band = reliability.chance_ece(p, resamples=300, debiased=debiased)
        inside += band.low <= reliability.ece(p, labels, debiased=debiased) <= band.high
    assert 88 <= inside <= 100


def test_an_overconfident_model_lies_far_above_its_band():
    p, labels = draw_answers(600, 4, seed=1, spread=1.0)
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert reliability.ece(sharp, labels) > 2 * reliability.chance_ece(sharp).high


def test_chance_needs_no_order_and_shrinks_with_more_items():
    p, _ = draw_answers(200, 3)
    assert reliability.chance_ece(p[::-1]) == reliability.chance_ece(p)
    assert reliability.chance_ece(np.tile(p, (16, 1))).mean < 0.4 * reliability.chance_ece(p).mean
    assert reliability.chance_ece(np.eye(3)) == reliability.ChanceBand(0.0, 0.0, 0.0)


def test_chance_is_named_by_its_seed():
    p, _ = draw_answers(50)
    assert reliability.chance_ece(p, seed=1) == reliability.chance_ece(p, seed=1)
    assert reliability.chance_ece(p, seed=1) != reliability.chance_ece(p, seed=2)


# ---- Impossible arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reliability.ece([[0.5, 0.5]], [0], n_bins=0), "n_bins must be at least 1"),
        (lambda: reliability.ece([[0.5, 0.5]], [0], binning="banana"), "binning must be one of"),
        (lambda: reliability.smooth_ece([[0.5, 0.5]], [2]), "labels must be between 0 and 1"),
        (lambda: reliability.chance_ece([[0.5, 0.5]], resamples=0), "resamples must be at least 1"),
        (lambda: reliability.chance_ece([[0.5, 0.5]], level=1), "level must be between 0 and 1"),
    ],
)
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
