"""Metrics: slow twins, and scikit-learn as an outside witness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss, roc_auc_score

from attnknn import metrics
from tests import oracles
from tests.answers import draw_answers, draw_votes

coarse_scores = st.lists(st.sampled_from([-1.5, 0.0, 1e-9, 2.0, 3.0]), min_size=1, max_size=12)


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


# ---- Telling two sets apart


@given(coarse_scores, coarse_scores)
def test_auroc_counts_pairs_in_order_and_half_of_the_ties(higher, lower):
    found = metrics.auroc(higher, lower)
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in higher for b in lower]
    assert found == pytest.approx(np.mean(pairs), abs=1e-12)
    of_first = [1] * len(higher) + [0] * len(lower)
    assert found == pytest.approx(roc_auc_score(of_first, [*higher, *lower]), abs=1e-12)
    assert found + metrics.auroc(lower, higher) == pytest.approx(1, abs=1e-12)
    assert metrics.auroc(np.exp(higher), np.exp(lower)) == found
    assert metrics.auroc(higher[::-1], lower[::-1]) == pytest.approx(found, abs=1e-15)


def test_auroc_is_one_half_where_a_score_says_nothing():
    assert metrics.auroc([0.3] * 4, [0.3] * 7) == 0.5
    one, other = np.random.default_rng(0).random((2, 20_000))
    assert metrics.auroc(one, other) == pytest.approx(0.5, abs=0.01)
    assert metrics.auroc([2, np.inf], [-np.inf, 1.9]) == 1
    assert metrics.auroc([0, 1], [2, 3]) == 0


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
        (lambda: metrics.auroc([], [0.5]), "both sets must hold numbers"),
        (lambda: metrics.auroc([0.5], [np.nan]), "both sets must hold numbers"),
        (lambda: metrics.auroc([[0.5]], [0.5]), "both sets must hold numbers"),
        (lambda: metrics.auroc(0.5, [0.5]), "both sets must hold numbers"),
        (lambda: metrics.unanimity([1, 2]), "labels must be of shape"),
        (lambda: metrics.unanimity(np.ones((0, 3))), "labels must be of shape"),
    ],
)
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
