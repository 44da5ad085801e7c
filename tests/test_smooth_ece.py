"""Smooth ECE: its definition added up point by point, closed forms, and what no ECE in bins can promise."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from attnknn import reliability
from tests.answers import draw_answers, draw_votes


def direct_error(p, labels, bandwidth):
    """∫ |(1/n) Σ (confidence − right) K(t, confidence)| dt: a sum over items and mirror images, point by point."""
    t, found = (np.arange(4000) + 0.5) / 4000, np.zeros(4000)
    for row, label in zip(p, labels, strict=True):
        confidence, gap = row.max(), row.max() - (row.argmax() == label)
        for image in range(-4, 6, 2):
            for place in (image + confidence, image - confidence):
                found += gap * np.exp(-((t - place) ** 2) / (2 * bandwidth**2)) / (bandwidth * math.sqrt(2 * math.pi))
    return np.abs(found).mean() / len(labels)


def answers_at(places, gaps):
    """A hundred items at each confidence, of six classes, so many percent less often right than it says."""
    p = np.array([[c, *[(1 - c) / 5] * 5] for c in np.repeat(places, 100)])
    right = [np.arange(100) < round(100 * (c - gap)) for c, gap in zip(places, gaps, strict=True)]
    return p, np.where(np.concatenate(right), 0, 1)


@pytest.mark.parametrize(
    "answers",
    [draw_answers(60), draw_answers(50, 2, 1, 0.1), draw_votes(40), draw_votes(40, 10, 2), draw_answers(40, 3, 2, 5)],
)
@pytest.mark.parametrize("sharpness", [0.4, 1.0, 4.0])
def test_the_smooth_ece_is_the_bandwidth_at_which_the_error_is_as_large(answers, sharpness):
    p, labels = answers
    p = p**sharpness / (p**sharpness).sum(axis=1, keepdims=True)
    found = reliability.smooth_ece(p, labels)
    assert found > 0.01
    assert direct_error(p, labels, found) == pytest.approx(found, abs=2e-5)
    assert direct_error(p, labels, 0.9 * found) >= 0.9 * found
    assert direct_error(p, labels, 1.1 * found) <= 1.1 * found


def test_where_all_are_equally_sure_the_smooth_ece_is_the_gap():
    for confidence, gap in ((0.8, 0.3), (0.6, -0.15), (1.0, 0.25)):
        assert reliability.smooth_ece(*answers_at([confidence], [gap])) == pytest.approx(abs(gap), abs=1e-5)


def test_gaps_to_the_same_side_add_up_however_they_are_smoothed():
    assert reliability.smooth_ece(*answers_at([0.5, 0.7, 0.95], [0.1, 0.2, 0.03])) == pytest.approx(0.11, abs=1e-5)


def test_gaps_to_opposite_sides_cancel_as_far_as_they_are_mixed():
    """Half the items are at 1/4 and too timid by g, half at 3/4 and too sure by g; by symmetry, at bandwidth s,

    E(s) = g (2 P − 1),  P = the chance that 1/4 + s Z, reflected, stays below 1/2.
    """
    gap = 0.25

    def error(s):
        below = [math.erf((m + c) / (s * math.sqrt(2))) for m in range(-8, 9, 2) for c in (0.25, -0.75)]
        return gap * (2 * sum(a - b for a, b in zip(below[::2], below[1::2], strict=True)) / 2 - 1)

    expected = brentq(lambda s: error(s) - s, 0.01, 1)
    assert 0.15 < expected < 0.24
    assert reliability.smooth_ece(*answers_at([0.25, 0.75], [-gap, gap])) == pytest.approx(expected, abs=1e-5)


def test_the_smooth_ece_is_zero_where_all_are_certain_and_right_and_one_where_all_are_wrong():
    assert reliability.smooth_ece(np.eye(3), [0, 1, 2]) == 0
    assert reliability.smooth_ece(np.eye(3), [1, 2, 0]) == pytest.approx(1, abs=1e-9)
    assert reliability.smooth_ece(*answers_at([0.3, 0.8], [0, 0])) < 2 * reliability.NARROWEST


@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 40), n_classes=st.integers(1, 5), coarse=st.booleans(), seed=st.integers(0, 1000))
def test_the_smooth_ece_lies_between_the_mean_gap_and_the_gaps_of_single_confidences(n, n_classes, coarse, seed):
    rng = np.random.default_rng(seed)
    p = rng.multinomial(5, [1 / n_classes] * n_classes, n) / 5 if coarse else rng.dirichlet(np.ones(n_classes), n)
    labels = rng.integers(0, n_classes, n)
    gaps = p.max(axis=1) - (p.argmax(axis=1) == labels)
    _, place = np.unique(p.max(axis=1).round(9), return_inverse=True)
    found = reliability.smooth_ece(p, labels)
    assert abs(gaps.mean()) - 1e-5 <= found <= np.abs(np.bincount(place, gaps)).sum() / n + 1e-5
    assert 0 <= found <= 1
    order = rng.permutation(n)
    assert reliability.smooth_ece(p[order], labels[order]) == pytest.approx(found, abs=1e-9)


def test_a_hair_moves_the_ece_in_bins_from_nothing_to_one_half_and_the_smooth_one_by_as_little_as_it_must():
    labels = np.repeat([0, 1], 50)
    level, apart = (
        np.array([[c, 0.98 - c, 0.02] for c in np.repeat(pair, 50)]) for pair in ([0.5, 0.5], [0.499, 0.501])
    )
    assert reliability.ece(level, labels, 2) == pytest.approx(0, abs=1e-9)
    assert reliability.ece(apart, labels, 2) == pytest.approx(0.501, abs=1e-9)
    assert reliability.smooth_ece(level, labels) < 1e-9
    assert reliability.smooth_ece(apart, labels) < 0.03


def test_the_smooth_ece_of_a_calibrated_model_falls_with_more_items():
    few, many = (np.mean([reliability.smooth_ece(*draw_answers(n, 4, s)) for s in range(10)]) for n in (200, 12_800))
    assert many < 0.4 * few


def test_ten_thousand_items_are_smoothed_in_a_moment():
    p, labels = draw_answers(10_000, 10)
    start = time.process_time()
    reliability.smooth_ece(p, labels)
    assert time.process_time() - start < 0.2
