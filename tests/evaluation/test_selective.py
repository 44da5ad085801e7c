"""Selective answers: a curve by hand, every way of breaking ties, and what the best and the worst can reach."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from attnknn import metrics
from attnknn.evaluation.selective import augrc, risk_coverage
from tests.answers import draw_answers, draw_votes


def answers(confidence, right):
    """Items of three classes that are so confident of class 0, which is right or is not."""
    confidence = np.asarray(confidence, dtype=np.float64)
    p = np.stack([confidence, 0.75 * (1 - confidence), 0.25 * (1 - confidence)], axis=1)
    return p, np.where(np.asarray(right, dtype=bool), 0, 1)


items = st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.8, 0.9, 1.0]), st.booleans()), min_size=1, max_size=6)


def test_the_curve_by_hand():
    curve = risk_coverage(*answers([0.8, 0.6, 0.9, 0.8], [False, False, True, True]))
    assert curve.threshold.tolist() == [0.9, 0.8, 0.6]
    assert curve.coverage.tolist() == [0.25, 0.75, 1]
    assert curve.selective_risk.tolist() == pytest.approx([0, 1 / 3, 0.5])
    assert curve.generalized_risk.tolist() == [0, 0.25, 0.5]
    assert augrc(*answers([0.8, 0.6, 0.9, 0.8], [False, False, True, True])) == 0.5 * 0.125 + 0.25 * 0.375


@settings(deadline=None)
@given(items)
def test_the_area_is_its_mean_over_every_way_of_breaking_ties(drawn):
    n, areas = len(drawn), []
    for order in permutations(range(n)):
        confidence = [drawn[i][0] for i in order]
        if confidence == sorted(confidence, reverse=True):
            risk = np.cumsum([0, *(not drawn[i][1] for i in order)]) / n
            areas.append(sum((risk[i] + risk[i + 1]) / 2 / n for i in range(n)))
    assert augrc(*answers(*zip(*drawn, strict=True))) == pytest.approx(np.mean(areas), abs=1e-12)


@given(items, st.randoms())
def test_the_curve_does_not_depend_on_the_order_of_items(drawn, random):
    one = risk_coverage(*answers(*zip(*drawn, strict=True)))
    other = risk_coverage(*answers(*zip(*random.sample(drawn, len(drawn)), strict=True)))
    for name in ("threshold", "coverage", "selective_risk", "generalized_risk"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(items)
def test_every_point_can_be_counted_and_the_area_lies_between_the_best_and_the_worst(drawn):
    p, labels = answers(*zip(*drawn, strict=True))
    curve, error = risk_coverage(p, labels), 1 - metrics.accuracy(p, labels)
    for point, threshold in enumerate(curve.threshold):
        answered = [right for confidence, right in drawn if confidence >= threshold - 1e-9]
        assert curve.coverage[point] == pytest.approx(len(answered) / len(drawn))
        assert curve.selective_risk[point] == pytest.approx(1 - np.mean(answered))
        assert curve.generalized_risk[point] == pytest.approx(curve.coverage[point] * curve.selective_risk[point])
    assert curve.coverage[-1] == 1
    assert error**2 / 2 - 1e-12 <= augrc(p, labels) <= error - error**2 / 2 + 1e-12


def test_the_best_the_worst_and_chance():
    right = np.arange(100) >= 30
    assert augrc(*answers(np.linspace(0.5, 0.9, 100), right)) == pytest.approx(0.3**2 / 2)
    assert augrc(*answers(np.linspace(0.9, 0.5, 100), right)) == pytest.approx(0.3 - 0.3**2 / 2)
    assert augrc(*answers(np.full(100, 0.7), right)) == pytest.approx(0.3 / 2)
    assert augrc(*answers(np.linspace(0.5, 0.9, 100), np.ones(100))) == 0
    assert augrc(*answers(np.linspace(0.5, 0.9, 100), np.zeros(100))) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "drawn", [draw_answers(), draw_answers(997, 3, 1, 0.1), draw_votes(), draw_votes(k=16, seed=2)]
)
def test_the_area_says_as_much_as_the_share_of_errors_and_the_auroc_of_confidence(drawn):
    p, labels = drawn
    right, confidence = p.argmax(axis=1) == labels, p.max(axis=1).round(6)
    error, found = 1 - right.mean(), augrc(p, labels)
    ours = metrics.auroc(confidence[right], confidence[~right])
    assert found == pytest.approx(error**2 / 2 + error * (1 - error) * (1 - ours), abs=1e-12)
    assert ours == pytest.approx(roc_auc_score(right, confidence), abs=1e-12)


def test_confidences_are_equal_however_a_vote_was_added_up():
    p, labels = draw_votes(n=300, k=10, seed=4)
    added = np.zeros_like(p, dtype=np.float32)
    for _ in range(10):
        added += np.where(added < p - 0.05, np.float32(0.1), np.float32(0))
    assert not np.array_equal(added, p)
    assert augrc(added, labels) == augrc(p, labels)
    np.testing.assert_array_equal(risk_coverage(added, labels).threshold, risk_coverage(p, labels).threshold)


def test_a_curve_is_read_only_and_refuses_what_is_no_answer():
    p, labels = draw_answers()
    with pytest.raises(ValueError, match="read-only"):
        risk_coverage(p, labels).coverage[0] = 1
    with pytest.raises(ValueError, match="labels must be between 0 and 3, however:"):
        augrc(p, labels + 1)
